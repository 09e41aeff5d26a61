"""The steps of our workflows and of our action, run as the runner runs them: expressions filled in, each in a shell of its own."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

PROJECT = Path(__file__).resolve().parents[2]
WORKFLOWS = PROJECT / ".github" / "workflows"
ACTION = PROJECT / "action.yml"
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


def load(path: Path) -> dict[str, Any]:
    """Return a YAML file as GitHub and GitLab read it: ``on`` is a word."""
    found = YAML(typ="safe", pure=True).load(path)
    assert isinstance(found, dict)
    return found


class Job:
    """One job of a workflow, or our action, with its inputs, in a workspace; actions of others are left out."""

    def __init__(
        self,
        workspace: Path,
        inputs: Mapping[str, str],
        environ: Mapping[str, str],
        workflow: str | None = None,
        name: str = "",
        known: Mapping[str, str] | None = None,
    ) -> None:
        self.workspace = workspace
        document = load(WORKFLOWS / workflow if workflow else ACTION)
        declared = document["on"]["workflow_call"]["inputs"] if workflow else document["inputs"]
        assert set(inputs) <= set(declared)
        values = {name: str(item.get("default", "")) for name, item in declared.items()} | dict(inputs)
        self.known = {f"inputs.{name}": value for name, value in values.items()}
        self.known |= {"github.workspace": str(workspace), **(known or {})}
        self.job = document["jobs"][name] if workflow else document["runs"]
        self.environ = {**environ, **self._filled(self.job.get("env", {}))}
        self._folder = self.job.get("defaults", {}).get("run", {}).get("working-directory", ".")
        self.log = ""

    def step(self, name: str) -> dict[str, Any]:
        """Return the step of that name."""
        (found,) = [step for step in self.job["steps"] if step.get("name") == name]
        assert isinstance(found, dict)
        return found

    def run(self, name: str) -> int:
        """Run one step and return its exit code; what it says is added to ``log``, its outputs are known from then on."""
        step, output, variables = self.step(name), self.workspace / "output", self.workspace / "variables"
        output.write_text("")
        variables.write_text("")
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace / self._filled({"in": step.get("working-directory", self._folder)})["in"],
            env={
                **self.environ,
                **self._filled(step.get("env", {})),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_ENV": str(variables),
                "GITHUB_ACTION_PATH": str(PROJECT),
                "GITHUB_REPOSITORY": "owner/repository",
                "GITHUB_RUN_ID": "4711",
                "RUNNER_TEMP": str(self.workspace.parent),
                "GITHUB_STEP_SUMMARY": str(self.workspace / "summary.md"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log += ran.stdout
        self.environ |= dict(line.partition("=")[::2] for line in variables.read_text().splitlines())
        for line in output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.known[f"steps.{step['id']}.outputs.{key}"] = value
        return ran.returncode

    def _filled(self, environ: Mapping[str, Any]) -> dict[str, str]:
        return {
            name: EXPRESSION.sub(lambda found: self.known.get(found[1], ""), str(value))
            for name, value in environ.items()
        }
