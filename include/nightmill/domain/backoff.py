"""How long to wait before a retry round."""

from __future__ import annotations


def retry_delay_s(round_number: int, base_s: float, cap_s: float, jitter: float) -> float:
    """Seconds before round `round_number` (1 = the first retry): doubles from `base_s` to `cap_s`.

    `jitter` in 0..1 takes off up to half, so that shards that failed together do not come back together.
    """
    full = min(cap_s, base_s * 2.0 ** min(round_number - 1, 30))
    return full * (1 - jitter / 2)
