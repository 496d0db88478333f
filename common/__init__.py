"""What every process shares: messages, settings, transport, networks. Imports no other package."""
