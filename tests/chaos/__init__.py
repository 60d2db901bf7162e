"""The chaos run: a whole job under all faults at once, its workers killed at random, and its accounts afterwards.

`make chaos` runs 5,000 items (CHAOS_ITEMS, CHAOS_SEED); the tests run a small one.
"""
