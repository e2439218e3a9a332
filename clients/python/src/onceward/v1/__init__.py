"""The messages of onceward.v1, written by generate.py."""
