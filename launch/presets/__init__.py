"""Named settings as TOML files."""
