"""What an axis of novelty is: one constant of the setting, with its unit and range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.arm.setting import Setting
from robo_eval_sim.novelty import Fixed, Level, Novelty, Range

if TYPE_CHECKING:
    import numpy as np


class Axis(Level):
    """Changes one constant of the setting by as much as is asked for.

    Attributes:
        parameter: The constant.
        unit: Its unit, empty if it has none.
        span: Least and greatest magnitude.
        drawn: What is drawn beside the magnitude, such as a direction.
        seeds: Constants that are drawn as seeds.
        is_count: Whether the magnitude is a whole number.
        falls: Whether the smaller magnitude is the stronger novelty.
        setting: Of the task; its defaults are level 0.
    """

    parameter: ClassVar[str]
    unit: ClassVar[str] = ""
    span: ClassVar[tuple[float, float]]
    drawn: ClassVar[Mapping[str, Fixed | Range]] = {}
    seeds: ClassVar[tuple[str, ...]] = ()
    is_count: ClassVar[bool] = False
    falls: ClassVar[bool] = False
    setting: type[Setting] = Setting

    def __init_subclass__(cls, *, effect: str, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.effects = dict.fromkeys(Profile, effect)
        cls.tables = {}

    @property
    def usual(self) -> float:
        """What the constant is at level 0."""
        return float(getattr(self.setting(), self.parameter))

    def sample(
        self,
        difficulty: Difficulty,
        profile: Profile,
        rng: np.random.Generator,
        *_: Any,
        **start: Any,
    ) -> dict[str, Any]:
        """The magnitude, and what is drawn beside it."""
        found = super().sample(difficulty, profile, rng, **start)
        return found | {name: int(rng.integers(2**32)) for name in self.seeds}

    def physics(self, drawn: Novelty) -> Setting:
        """The setting with this constant."""
        return self.setting(**drawn.parameters)
