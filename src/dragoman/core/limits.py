"""How much may be asked in how short a time: the generic cell rate algorithm, one number for each who asks.

A bucket holds so many tokens and fills at a steady rate; an operation costs some. Nothing ticks: all there is to know
is when the bucket will be full again.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

__all__ = ["COSTS", "Buckets", "Rate"]

# What an operation costs: to send is work, to look is not.
COSTS = {"send": 30, "stream": 30, "subscribe": 5, "get": 5, "list": 5, "cancel": 5, "card": 2}
COST_OTHER = 5
BUCKETS_MAX = 100_000


class Rate(Struct, frozen=True):
    """So many tokens a minute, and as many at once."""

    tokens_per_minute: float

    @property
    def seconds_per_token(self) -> float:
        return 60.0 / self.tokens_per_minute


class Buckets:
    """One bucket for each who asks, under one rate."""

    def __init__(self, rate: Rate) -> None:
        self._seconds_per_token = rate.seconds_per_token
        self._burst_seconds = 60.0
        # Until when each is owed, by who asks; a bucket that is full is not kept.
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, who: str, tokens: float, now: float) -> float:
        """Take tokens; how many seconds to wait if there are not enough, and then none are taken."""
        full_at = max(self._full_at.get(who, now), now)
        after = full_at + tokens * self._seconds_per_token
        late = after - now - self._burst_seconds
        # A cost above the whole bucket is borne by a full one: else it could never be paid.
        if late > 0 and full_at > now:
            return late
        self._full_at[who] = after
        if len(self._full_at) > BUCKETS_MAX:
            self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        full = [who for who, at in self._full_at.items() if at <= now]
        for who in full:
            del self._full_at[who]
        while len(self._full_at) > BUCKETS_MAX:
            self._full_at.popitem(last=False)
