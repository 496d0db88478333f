"""The actor: owns emulators, plays, and streams what happened."""
