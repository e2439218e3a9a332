"""The messages and stubs of onceward.v1, written by generate.py."""
