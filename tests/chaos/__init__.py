"""The chaos run: a whole job under all faults at once, its workers killed at random, and its accounts afterwards.

`make chaos` runs 5,000 items (CHAOS_ITEMS, CHAOS_SEED) whose workers live 2 s and meet a strike every 1.5 s on average
(CHAOS_LIFE_S, CHAOS_STRIKE_S); the tests run a small one.
"""
