"""What ``attach --system`` has seen, made by hand."""

from dataclasses import replace

from harness.core.interference import Activity, Association, Interference, Loss, Pauses

AGENT = Activity(
    pid=4711,
    name="agent",
    command="agent --every 2.5",
    ran_s=2.4,
    meanwhile_s=0.2,
    blocked_s=0.0,
    bursts=24,
    period_s=2.5,
)
BUILD = Activity(
    pid=815, name="cc1plus", command="cc1plus -quiet x.cpp", count=31, ran_s=40.0, meanwhile_s=0.6, bursts=31
)
HELD_UP = Interference(
    watched=Activity(pid=99, name="server", command="server --port 80", ran_s=21.0, blocked_s=1.9, bursts=1),
    chosen=False,
    seconds=60.0,
    interval_s=0.01,
    own_share=0.014,
    pauses={
        Loss.CPU: Pauses(count=140, lost_s=0.9, longest_s=0.012),
        Loss.BLOCKED: Pauses(count=24, lost_s=1.9, longest_s=0.121, period_s=2.5),
    },
    where={"vm_mmap_pgoff": 1.8, "__vm_munmap": 0.1},
    processes=84,
    active=(BUILD, AGENT),
    associations=(
        Association(pid=4711, loss=Loss.BLOCKED, beside=0.98, usual=0.06, excess_s=1.7, score=21.0, p_value=1 / 4001),
        Association(pid=815, loss=Loss.CPU, beside=0.9, usual=0.88, excess_s=0.02, score=1.1, p_value=0.4),
        Association(pid=815, loss=Loss.BLOCKED, beside=0.8, usual=0.88, excess_s=-0.1, score=-1.0, p_value=1.0),
        Association(pid=4711, loss=Loss.CPU, beside=0.01, usual=0.06, excess_s=-0.1, score=-1.1, p_value=1.0),
    ),
    tested=4,
    rotations=4000,
    seed=43,
    culprits=(4711,),
)
NOBODY = replace(
    HELD_UP, chosen=True, sees_functions=False, where={}, culprits=(), associations=HELD_UP.associations[1:]
)
FEW = replace(
    NOBODY,
    pauses={Loss.CPU: Pauses(count=3, lost_s=0.4, longest_s=0.2)},
    associations=(),
    tested=0,
)
WELL = replace(FEW, pauses={}, sees_functions=True)


def named(*names: str) -> Interference:
    """Return one with hostile names in all of its texts."""
    text = "".join(names)
    active = tuple(replace(one, name=text, command=text) for one in HELD_UP.active)
    return replace(HELD_UP, watched=replace(HELD_UP.watched, name=text, command=text), active=active, where={text: 1.0})
