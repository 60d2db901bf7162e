"""run_shard: drives one shard until each of its items is settled.

A level-triggered reconciler, not a script of steps. Each wake-up reads the shard's true state from the ledger and the
provider, takes every next legal step, and either ends or says until when to wait. A first run, a retry, a resumed
worker and a person who clears the task all take the same path, and none of them pays again.
"""

from nightmill.stages.run_shard.wake import Finished, Waiting, wake

__all__ = ["Finished", "Waiting", "wake"]
