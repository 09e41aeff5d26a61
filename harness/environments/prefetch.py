"""Builds environments ahead, one at a time, in a thread; a build that turns out unneeded is stopped without waiting."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, Self

from harness.core.environment import Environment, EnvSpec
from harness.environments.builder import EnvironmentBuilder
from harness.machine.pool import answer

_JOIN_S: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class _Ahead:
    """One environment that is built, or will be; it is no longer needed once ``cancelled`` is set."""

    spec: EnvSpec
    cancelled: threading.Event = field(default_factory=threading.Event)
    done: "Future[Environment]" = field(default_factory=Future)


class Prefetch:
    """Builds the environment asked for, and ahead of time the next; ``built``: spec's name -> seconds."""

    def __init__(self, builder: EnvironmentBuilder) -> None:
        self._builder = builder
        self._ahead: list[_Ahead] = []
        self._threads: list[threading.Thread] = []
        self.built: dict[str, float] = {}

    def all_of(self, specs: Sequence[EnvSpec]) -> list[Environment]:
        environments = self._builder.build_all(specs)
        for environment in environments:
            self._count(environment)
        return environments

    def begin(self, specs: Sequence[EnvSpec]) -> None:
        """Build ``specs`` one after another from now on; what was begun before and is not among them is ended."""
        self._drop(but=specs)
        known = [item.spec for item in self._ahead]
        fresh = [_Ahead(spec=spec) for spec in specs if spec not in known]
        if fresh:
            self._ahead += fresh
            thread = threading.Thread(target=self._build_all, args=(fresh,), daemon=True, name="prefetch")
            self._threads.append(thread)
            thread.start()

    def environment(self, spec: EnvSpec) -> Environment:
        """Return the environment of ``spec``, ending every other build. Raises ``EnvironmentUnavailable``: it cannot
        be built.
        """
        self._drop(but=[spec])
        begun = next((item for item in self._ahead if item.spec == spec), None)
        if begun is not None:
            return answer(begun.done)
        environment = self._builder.build(spec)
        self._count(environment)
        return environment

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """End what is being built, within 15 s."""
        self._drop(but=())
        limit = time.monotonic() + _JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, limit - time.monotonic()))

    def _drop(self, *, but: Sequence[EnvSpec]) -> None:
        for item in self._ahead:
            if item.spec not in but:
                item.cancelled.set()
        self._ahead = [item for item in self._ahead if not item.cancelled.is_set()]

    def _build_all(self, items: Sequence[_Ahead]) -> None:
        for item in items:
            if item.cancelled.is_set():
                continue
            try:
                environment = self._builder.build(item.spec, item.cancelled)
            except Exception as error:  # noqa: BLE001  whoever asks for it gets it
                item.done.set_exception(error)
            else:
                self._count(environment)
                item.done.set_result(environment)

    def _count(self, environment: Environment) -> None:
        if environment.built_s:
            self.built[environment.spec.name] = environment.built_s
