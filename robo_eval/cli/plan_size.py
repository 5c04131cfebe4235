"""`robo-eval plan-size`: how many episodes or hours an answer needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from robo_eval.cli.options import taking
from robo_eval.cli.output import JsonOption, print_json, say
from robo_eval.core.errors import InputError
from robo_eval.core.wording import counted

app = typer.Typer(no_args_is_help=True)

LevelOption = Annotated[float, typer.Option("--level", help="Coverage of the interval.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How an answer is given.

    Attributes:
        repeats: Episodes that share a seed.
        alike: Correlation of their outcomes.
        json: Whether to answer as JSON.
    """

    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Episodes of a policy that share a seed.")
    ] = 1
    alike: Annotated[
        float,
        typer.Option(
            "--alike", min=0.0, max=1.0, help="Correlation of their outcomes; 1 if they end alike."
        ),
    ] = 1.0
    json: JsonOption = False

    def answer(
        self, data: dict[str, object], text: str, *, independent: int = 1, least: int = 1
    ) -> None:
        """Print an answer, with the seeds to play where episodes share them.

        Args:
            data: The answer.
            text: The same for people.
            independent: How many independent episodes or pairs it asks for.
            least: Fewer seeds decide nothing.
        """
        from robo_eval.stats.planning import seeds_needed

        if self.repeats > 1:
            seeds = max(least, seeds_needed(independent, self.repeats, alike=self.alike))
            data |= {
                "seeds": seeds,
                "repeats": self.repeats,
                "alike": self.alike,
                "episodes_played": seeds * self.repeats,
            }
            text += (
                f"; where {self.repeats} share a seed and their outcomes correlate by"
                f" {self.alike:g}, about {counted(seeds, 'seed')} in their place"
            )
        if self.json:
            print_json(data)
        else:
            say(text)


@app.command("width", short_help="Episodes for an interval of some width.")
@taking(Asked)
def width(
    how: Asked,
    *,
    rate: Annotated[float, typer.Option(help="Success rate expected; 0.5 is the worst.")] = 0.5,
    to: Annotated[float, typer.Option("--to", help="Width wanted, upper less lower end.")],
    level: LevelOption = 0.95,
) -> None:
    """Episodes after which the interval of a success rate is at most so wide.

    Examples: robo-eval plan-size width --rate 0.9 --to 0.2; robo-eval plan-size width --to 0.2
    --repeats 5 --alike 0.5
    """
    from robo_eval.stats.planning import episodes_for_width

    with _refusals():
        n = episodes_for_width(rate, to, level=level)
    how.answer(
        {"episodes": n, "rate": rate, "width": to, "level": level, "method": "clopper_pearson"},
        f"{counted(n, 'episode')}: then the Clopper-Pearson interval ({level:.0%}) of a success"
        f" rate near {rate:g} is at most {to:g} wide",
        independent=n,
    )


@app.command("at-least", short_help="Episodes without a failure for a rate.")
@taking(Asked)
def at_least(
    how: Asked,
    *,
    rate: Annotated[float, typer.Option(help="Success rate to be shown.")],
    level: LevelOption = 0.95,
) -> None:
    """Episodes without a failure that show that a success rate is at least so high.

    Example: robo-eval plan-size at-least --rate 0.95
    """
    from robo_eval.stats.planning import failure_free_episodes

    with _refusals():
        n = failure_free_episodes(rate, level=level)
    how.answer(
        {"episodes": n, "failures": 0, "rate": rate, "level": level},
        f"{'1 episode' if n == 1 else f'{n} episodes in a row'} without a failure"
        f" show{'s' * (n == 1)} a success rate of at least {rate:g} (one-sided, {level:.0%})",
        independent=n,
    )


@app.command("difference", short_help="Pairs or episodes to find a difference.")
@taking(Asked)
def difference(
    how: Asked,
    *,
    first: Annotated[float, typer.Option(help="Success rate expected of one policy or side.")],
    second: Annotated[float, typer.Option(help="Success rate expected of the other.")],
    both: Annotated[
        float | None,
        typer.Option(help="Share of pairs in which both succeed; default as if by chance."),
    ] = None,
    power: Annotated[float, typer.Option("--power", help="Chance wanted to find it.")] = 0.8,
    alpha: Annotated[float, typer.Option("--alpha", help="Largest p value that decides.")] = 0.05,
) -> None:
    """Pairs, or episodes of each arm, with which a difference of two success rates is found.

    Pairs meet the same conditions; how much that gains depends on how often both succeed.

    Example: robo-eval plan-size difference --first 0.9 --second 0.7 --both 0.65
    """
    from robo_eval.stats.planning import episodes_per_arm, pairs_for_power

    together = first * second if both is None else both
    win, loss = first - together, second - together
    if min(win, loss) < -1e-12 or win + loss + together > 1.0 + 1e-12:
        raise InputError(
            f"--both {together:g} does not fit success rates of {first:g} and {second:g}; it lies"
            f" between {max(0.0, first + second - 1.0):g} and {min(first, second):g}"
        )
    with _refusals():
        arm = episodes_per_arm(first, second, power=power, alpha=alpha)
        pairs = pairs_for_power(max(win, 0.0), max(loss, 0.0), power=power, alpha=alpha)
    how.answer(
        {
            "pairs": pairs,
            "episodes_per_arm": arm,
            "first": first,
            "second": second,
            "both": together,
            "power": power,
            "alpha": alpha,
        },
        f"{pairs} pairs (exact McNemar test), or {arm} episodes of each without pairs, find a"
        f" difference of {first:g} and {second:g} with chance {power:g} at p <= {alpha:g}; both"
        f" succeed in {together:.2f} of the pairs",
        independent=pairs,
        # Below so many seeds no way of flipping their signs decides at alpha.
        least=1 + math.ceil(-math.log2(alpha) - 1e-9),
    )


@app.command("hours", short_help="Hours to bound an incident rate.")
@taking(Asked, "json")
def hours(
    how: Asked,
    *,
    per_100_h: Annotated[
        float, typer.Option("--per-100-h", help="Incidents per 100 h to stay below.")
    ],
    events: Annotated[int, typer.Option(min=0, help="Incidents that may happen.")] = 0,
    level: LevelOption = 0.95,
) -> None:
    """Hours of exposure that show that an incident rate is below a bound.

    Example: robo-eval plan-size hours --per-100-h 1 --events 0
    """
    from robo_eval.stats.planning import exposure_for_rate

    with _refusals():
        needed = exposure_for_rate(per_100_h / 100.0, events=events, level=level)
    what = "without an incident" if not events else f"with {counted(events, 'incident')}"
    how.answer(
        {"hours": needed, "events": events, "per_100_h": per_100_h, "level": level},
        f"{needed:.1f} h {what} show a rate below {per_100_h:g} per 100 h (one-sided, {level:.0%})",
    )


@contextmanager
def _refusals() -> Iterator[None]:
    """What the statistics refuse, as a refusal of the command line."""
    try:
        yield
    except ValueError as err:
        raise InputError(str(err)) from err
