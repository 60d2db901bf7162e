"""How long to wait before a retry round."""

from __future__ import annotations


def retry_delay_s(failures: int, base_s: float, cap_s: float, draw: float) -> float:
    """Seconds to wait after that many failures (1 = the first): full jitter.

    `draw` in 0..1 is the share of a time that doubles from `base_s` to `cap_s`. The whole of it is drawn, because
    waits that differ little bring everything that failed together back together
    (https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/).
    """
    return draw * min(cap_s, base_s * 2.0 ** min(failures - 1, 30))
