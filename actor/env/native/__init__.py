"""A console for cartridges without a mapper, bit-exact with nes_py; `native_core.py` uses it."""
