"""The table of devices: what models can run on, a row each, and what each row can do.

Nothing else in the controller asks for a device by its name. A worker is told what torch calls its device and what that
can do (``Device.capabilities``). A device that this table does not have is a row of the configuration
(``[tool.compat.devices]``), brought into the workers by an operator library.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from harness.core.errors import ConfigError

AUTO: Final = "auto"
NAME_PATTERN: Final = r"\A[a-z][a-z0-9_]*\Z"
# What a declaration names that rules no device out, and what it names by default.
ANY: Final = ("cpu", "cuda")
# What a worker must know, by the names of the attributes below.
FOR_WORKERS: Final = ("streams", "events", "memory", "graphs", "nvidia")
# What the configuration may say of a device of its own.
CONFIGURED: Final = ("streams", "events", "memory", "graphs", "contexts", "lazy_modules", "cpp")


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One kind of device.

    Attributes:
        torch: what torch calls it, and its module for it (``torch.cuda``).
        build: the build of torch that sees it, where not every one does.
        nodes: device files, with ``*``; a machine that has it shows one of them. None: only torch can tell.
        automatic: whether ``auto`` takes it on a machine that shows it.
        gpu: whether it is a GPU: a device outside of torch never counts as one.
        streams: whether its work is queued in streams, each of which can be waited for by itself.
        events: whether it can take the time between two points of a stream.
        memory: whether its allocator tells what is in use, and the peak.
        graphs: whether the work of a call can be captured as a graph, and replayed.
        contexts: whether each process that uses it needs a context there first, which takes seconds and hundreds of MB:
            probes share processes where they may.
        lazy_modules: whether ``CUDA_MODULE_LOADING`` says when kernels are loaded there.
        cudnn: whether the switches of ``torch.backends.cudnn`` have an effect on it.
        nvidia: whether it is NVIDIA's: ``nvidia-smi`` knows it, CUDA's variables and TF32 have an effect on it, and the
            C++ worker is built with CUDA for it.
        cpp: whether the C++ worker can run models on it.
    """

    name: str
    words: str
    torch: str
    build: str = ""
    nodes: tuple[str, ...] = ()
    automatic: bool = False
    gpu: bool = False
    streams: bool = False
    events: bool = False
    memory: bool = False
    graphs: bool = False
    contexts: bool = False
    lazy_modules: bool = False
    cudnn: bool = False
    nvidia: bool = False
    cpp: bool = False

    @property
    def is_cpu(self) -> bool:
        return self.name == "cpu"

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What a worker is told that it can do."""
        return tuple(name for name in FOR_WORKERS if self.has(name))

    def has(self, capability: str) -> bool:
        """Whether it has what an attribute of that name says; blank asks for nothing."""
        return not capability or bool(getattr(self, capability))

    def takes(self, declared: Collection[str]) -> bool:
        """Whether a model that is declared for these devices may run here; ``ANY`` rules none out."""
        return not {self.name, self.torch}.isdisjoint(declared) or set(ANY) <= set(declared)


CPU: Final = Device(name="cpu", words="CPU", torch="cpu", cpp=True)
ROWS: Final = (
    CPU,
    Device(
        name="cuda",
        words="NVIDIA GPU",
        torch="cuda",
        build="CUDA",
        nodes=("/dev/nvidiactl",),
        automatic=True,
        gpu=True,
        streams=True,
        events=True,
        memory=True,
        graphs=True,
        contexts=True,
        lazy_modules=True,
        cudnn=True,
        nvidia=True,
        cpp=True,
    ),
    # Not taken by itself: any machine with an AMD processor that has graphics shows the file, whatever torch is there.
    Device(
        name="rocm",
        words="AMD GPU",
        torch="cuda",
        build="ROCm",
        nodes=("/dev/kfd",),
        gpu=True,
        streams=True,
        events=True,
        memory=True,
        graphs=True,
        contexts=True,
        cudnn=True,
    ),
    # torch.xpu has graphs from 2.11 on only: an upgrade to it could not be judged by them.
    Device(
        name="xpu",
        words="Intel GPU",
        torch="xpu",
        build="XPU",
        nodes=("/dev/dri/card*",),
        gpu=True,
        streams=True,
        events=True,
        memory=True,
        contexts=True,
    ),
)
TABLE: Final[Mapping[str, Device]] = MappingProxyType({row.name: row for row in ROWS})
NO_OTHERS: Final[Mapping[str, Device]] = MappingProxyType({})


def device_named(name: str, others: Mapping[str, Device] = NO_OTHERS) -> Device:
    """Return the device of that name, also of the configured ``others``. Raises ``ConfigError``."""
    known = {**others, **TABLE}
    if name not in known:
        raise ConfigError(
            f"there is no device {name!r}",
            f"one of: {', '.join(known)}; or describe it in [tool.compat.devices.{name}]",
        )
    return known[name]
