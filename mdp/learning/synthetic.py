"""Generate synthetic tweet volumes with the rhythm, the bursts and the tails of real ones."""

import numpy as np

from mdp.learning.logs import Floats, Log, Times

STEP_SECONDS = 300
_DAY = 86_400 // STEP_SECONDS  # steps
_HOUR = 3600 // STEP_SECONDS

# Fitted by eye to hourly sums of four companies' tweets over two months; see docs/learning.md for the comparison.
_DAILY = 0.48  # of the logarithm: the afternoon has about e^0.96 times the load of the night
_PEAK_HOUR = 17.5
_WEEKEND = -0.42
_MOOD, _MOOD_HOURS = 0.25, 1.5  # how far the load strays from its rhythm, and for how long
_DAY_MOOD = 0.12  # whole days that are louder or quieter than others
_BURSTS_A_DAY = 1.1
_BURST_TAIL, _BURST_SIZE, _LARGEST_BURST = 1.25, 0.7, 60.0  # Pareto: size over the usual load
_BURST_HOURS = 0.9  # until it has faded to a third
_SHAPE = 9.0  # of the negative binomial: counts of five minutes vary more than Poisson's


def generate_tweet_volume(
    seed: int = 0, *, days: float = 55.0, per_step: float = 16.0, start: str = "2015-02-26 21:42:53"
) -> Log:
    """Generate counts of five minutes each; `per_step` is their usual size.

    rate = per_step * exp(day + week + mood) * (1 + bursts): the mood is an autoregression of some hours and one draw a
    day, bursts come at random with Pareto sizes and fade exponentially. Counts are negative binomial around the rate.
    The same seed gives the same log.
    """
    rng = np.random.default_rng(seed)
    steps = max(1, round(days * _DAY))
    times = np.datetime64(start, "us") + np.arange(steps) * np.timedelta64(STEP_SECONDS, "s")
    rate = per_step * np.exp(_rhythm(times) + _mood(rng, steps)) * (1 + _bursts(rng, steps))
    counts = rng.negative_binomial(_SHAPE, _SHAPE / (_SHAPE + rate))
    return Log(
        times, counts.astype(np.float64), source=f"tweet_volume(seed={seed}, days={days:g}, per_step={per_step:g})"
    )


def _rhythm(times: Times) -> Floats:
    """A daily wave, and quiet weekends."""
    hours = times.astype("datetime64[s]").astype(np.int64) / 3600
    weekday = (hours // 24 + 3) % 7  # 1970 began on a Thursday
    daily = _DAILY * np.cos(2 * np.pi * (hours - _PEAK_HOUR) / 24)
    rhythm: Floats = daily + np.where(weekday >= 5, _WEEKEND, 0.0)
    return rhythm


def _mood(rng: np.random.Generator, steps: int) -> Floats:
    """A stationary autoregression, as a recursion over hours that is drawn out to steps, and a draw a day."""
    hours = steps // _HOUR + 2
    keep = np.exp(-1 / _MOOD_HOURS)
    shocks = rng.normal(0, _MOOD * np.sqrt(1 - keep**2), hours)
    mood = np.empty(hours)
    now = rng.normal(0, _MOOD)
    for hour, shock in enumerate(shocks):
        now = keep * now + shock
        mood[hour] = now
    by_day = rng.normal(0, _DAY_MOOD, steps // _DAY + 2)
    place = np.arange(steps)
    drawn: Floats = np.interp(place / _HOUR, np.arange(hours), mood) + by_day[place // _DAY]
    return drawn


def _bursts(rng: np.random.Generator, steps: int) -> Floats:
    """The sum of all bursts, in parts of the usual load."""
    total = np.zeros(steps)
    for begin in np.flatnonzero(rng.random(steps) < _BURSTS_A_DAY / _DAY).tolist():
        size = min(_LARGEST_BURST, _BURST_SIZE * (1 + rng.pareto(_BURST_TAIL)))
        fade = _BURST_HOURS * _HOUR * rng.lognormal(0, 0.5)
        end = min(steps, begin + int(8 * fade) + 1)
        total[begin:end] += size * np.exp(-np.arange(end - begin) / fade)
    return total
