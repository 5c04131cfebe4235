"""What the puck declares of itself."""

from robo_eval.core.task import Part, TaskSpec

ENV = "Lab/SlidePuck-v0"


def _levels():
    from robo_eval_sim.novelty import levels_in

    return levels_in("slide_puck.levels", ENV)


SPEC = TaskSpec(
    env=ENV,
    title="SlidePuck",
    environment="slide_puck.environment:SlidePuckEnv",
    end="It ends when the puck is in its corner, or after 60 ticks of 0.02 s.",
    success="The puck came to its corner.",
    succeeded="arrived",
    quality="1 if it arrived, else less by its distance in metres.",
    tick_s=0.02,
    max_ticks=60,
    actions=("nothing", "right", "left", "forward", "backward"),
    pushes=((0.0, 0.0), (4.0, 0.0), (-4.0, 0.0), (0.0, 4.0), (0.0, -4.0)),
    state=(
        Part(name="puck_position", size=2, unit="m", about="x, y in world"),
        Part(name="puck_velocity", size=2, unit="m/s", about="x, y in world"),
    ),
    bodies={"puck": "body"},
    levels=_levels,
)
