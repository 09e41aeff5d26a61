"""Our files for CI servers against their published schemas, and against the habits that make a workflow unsafe."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from check_jsonschema.builtin_schemas import get_builtin_schema

from harness.config.durations import seconds_of
from harness.config.policy import parse_policy
from harness.core.findings import SEVERITY
from harness.serving.settings.mitigations import MITIGATIONS
from tests.workflows.steps import ACTION, PROJECT, WORKFLOWS, load

EXAMPLES = PROJECT / "docs" / "examples" / "ci"
FILES = [(path, "vendor.github-workflows") for path in sorted(WORKFLOWS.glob("*.yml"))]
FILES += [(EXAMPLES / "gitlab-ci.yml", "vendor.gitlab-ci"), (ACTION, "vendor.github-actions")]


@pytest.mark.parametrize(("path", "schema"), FILES, ids=[path.name for path, _ in FILES])
def test_the_published_schema_accepts_the_file(path: Path, schema: str) -> None:
    validator(schema).validate(load(path))


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ("vendor.github-workflows", {"on": "push", "jobs": {"a": {"steps": []}}}),
        ("vendor.gitlab-ci", {"a": {"artifacts": {"when": "?"}}}),
        ("vendor.github-actions", {"name": "a", "description": "b", "runs": {"using": "composite"}}),
        (
            "vendor.github-actions",  # a step without its shell
            {"name": "a", "description": "b", "runs": {"using": "composite", "steps": [{"run": "true"}]}},
        ),
    ],
)
def test_the_schema_refuses_a_job_that_does_nothing(schema: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validator(schema).validate(wrong)


def validator(schema: str) -> Any:
    document = get_builtin_schema(schema)
    return jsonschema.validators.validator_for(document)(document)


@pytest.mark.parametrize("path", [*sorted(WORKFLOWS.glob("*.yml")), ACTION], ids=lambda path: path.name)
def test_no_expression_is_pasted_into_a_script_and_every_action_has_a_version(path: Path) -> None:
    """What stands in an input would be run: it comes in by an environment variable."""
    document = load(path)
    for job in (document["jobs"] if "jobs" in document else {"": document["runs"]}).values():
        for step in job.get("steps", []):
            assert "${{" not in step.get("run", "")
            assert "uses" not in step or step["uses"] == "./" or re.search(r"@v\d+$", step["uses"])


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_a_workflow_may_read_the_repository_and_no_more_but_what_comments(path: Path) -> None:
    comments = {"pull-requests": "write"} if path.name == "version-bump-gate.yml" else {}
    assert load(path)["permissions"] == {"contents": "read", **comments}


def test_the_example_passes_on_inputs_that_exist() -> None:
    call = load(WORKFLOWS / "version-bump-gate.yml")["jobs"]["upgrade"]["steps"][-1]
    assert call["uses"] == "./"
    assert set(call["with"]) <= set(load(ACTION)["inputs"])
    assert (PROJECT / call["with"]["policy"]).is_file()


def test_every_input_of_the_action_is_reported_in_the_guide() -> None:
    page = (PROJECT / "docs" / "guide" / "in-ci.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE))
    action = load(ACTION)
    assert {*action["inputs"], *action["outputs"]} <= rows


@pytest.mark.parametrize("there", [False, True])
def test_the_guide_asks_for_a_baseline_only_where_there_is_one(tmp_path: Path, there: bool) -> None:
    page = (PROJECT / "docs" / "guide" / "in-ci.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```sh\n(\[ ! -f main/report.json.*?)```", page, re.DOTALL)
    (tmp_path / "main").mkdir()
    if there:
        (tmp_path / "main" / "report.json").touch()
    gate = tmp_path / "torchscript-gate"
    gate.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    gate.chmod(0o755)
    asked = subprocess.run(
        ["sh", "-euc", lines],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert (asked[:1], "--baseline" in asked) == (["compat"], there)


@pytest.mark.parametrize("minutes", ["timeout-minutes", "timeout"])
def test_the_gate_ends_before_the_server_ends_the_job(minutes: str) -> None:
    if minutes == "timeout":
        (job,) = load(EXAMPLES / "gitlab-ci.yml").values()
        limit_s, words = (
            seconds_of(job["variables"]["RUNNER_SCRIPT_TIMEOUT"].replace("m", "min"), ""),
            job["script"][-1],
        )
    else:
        job = load(WORKFLOWS / "version-bump-gate.yml")["jobs"]["upgrade"]
        limit_s, words = 60 * job["timeout-minutes"], job["steps"][-1]["with"]["options"]
    (budget,) = re.findall(r"--budget=(\S+)", words)
    assert seconds_of(budget, "") + 600 < limit_s


def test_the_example_of_a_policy_is_one() -> None:
    text = (EXAMPLES / "policy.toml").read_text(encoding="utf-8")
    policy = parse_policy(text, file="policy.toml", mitigations=MITIGATIONS, kinds=SEVERITY)
    assert (policy.minimum_models, policy.unused_waivers) == (1, "warn")


def test_a_red_job_of_gitlab_keeps_its_environments() -> None:
    (job,) = load(EXAMPLES / "gitlab-ci.yml").values()
    assert job["cache"]["when"] == "always"


def test_the_job_of_gitlab_names_the_models_that_start_it() -> None:
    """Without them it would look for fixtures, which is exit code 2."""
    (job,) = load(EXAMPLES / "gitlab-ci.yml").values()
    words = shlex.split(job["script"][-1])
    folder = words[words.index("--artifacts") + 1]
    assert all(f"{folder}/**/*" in rule["changes"] for rule in job["rules"])


REPORTS = "reports/2026-11-29T02-12-44-2.1.2-to-2.6.0"
PATCHED = f"{REPORTS}/explained/ranker__alone/rewrites/device-test-3891de46/ranker.pt"


def fits(path: str, pattern: str) -> bool:
    """Whether a pattern of an upload means a file; a folder means all below it."""
    whole = pattern + "**" * pattern.endswith("/")
    parts = [
        ".*" if part == "**" else "[^/]*" if part == "*" else re.escape(part) for part in re.split(r"(\*+)", whole)
    ]
    return re.fullmatch("".join(parts).replace(".*/", "(?:.*/)?"), path) is not None


@pytest.mark.parametrize(
    ("path", "is_kept"),
    [
        (f"{REPORTS}/report.json", True),
        (PATCHED, True),
        (PATCHED.replace(".pt", ".inputs.pt"), True),
        (f"{REPORTS}/given/ranker-8cf8cebaf512.pt", False),
        (f"{REPORTS}/probes/8cf8cebaf512/ranker.pt", False),
        (f"{REPORTS}/explained/ranker__alone/probes/8cf8cebaf512/inputs/tensors.bin", False),
    ],
)
def test_what_the_comment_says_to_deploy_is_in_the_uploaded_run(path: str, is_kept: bool) -> None:
    (job,) = load(EXAMPLES / "gitlab-ci.yml").values()
    named = any(fits(path, pattern) for pattern in job["artifacts"]["paths"])
    assert (named and not any(fits(path, pattern) for pattern in job["artifacts"]["exclude"])) is is_kept
    (step,) = [step for step in load(ACTION)["runs"]["steps"] if step.get("name") == "Keep the run"]
    kept = False
    for line in step["with"]["path"].splitlines():  # as @actions/glob reads them: the last one that fits counts
        pattern = line.removeprefix("!").replace("${{ inputs.project }}/.torchscript-gate/", "")
        kept = not line.startswith("!") if fits(path, pattern) else kept
    assert kept is is_kept


def test_every_example_fetches_models_from_git_lfs() -> None:
    for name in ("version-bump-gate.yml", "fleet-gate.yml"):
        jobs = load(WORKFLOWS / name)["jobs"].values()
        checkouts = [step for job in jobs for step in job["steps"] if "actions/checkout" in step.get("uses", "")]
        assert checkouts and all(step["with"]["lfs"] for step in checkouts)
    pages = (PROJECT / "docs" / "guide" / "in-ci.md", ACTION)
    for text in (page.read_text() for page in pages):
        assert re.findall(r"actions/checkout\S+[\s\S]{0,30}lfs: true", text)


def test_an_undecided_job_of_gitlab_may_not_pass() -> None:
    (job,) = load(EXAMPLES / "gitlab-ci.yml").values()
    assert "allow_failure" not in job
    assert json.dumps(job["script"]).count("||") == 0
