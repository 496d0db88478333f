"""The commands that a person runs; they know the processes only as command lines."""
