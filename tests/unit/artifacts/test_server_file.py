"""``server.toml``: what it says, and every mistake named by its key."""

from pathlib import Path

import pytest

from harness.artifacts.server_file import SERVER, read_server
from harness.config.schema import Table
from harness.core.errors import ConfigError

PROJECT = Path(__file__).resolve().parents[3]


def written(folder: Path, text: str) -> Path:
    file = folder / "server.toml"
    file.write_text(text)
    return file


def test_what_is_not_written_follows_from_the_protocol(tmp_path: Path) -> None:
    server = read_server(written(tmp_path, 'command = "serve --at {port}"\nprotocol = "v2"'))
    assert (server.command, server.ready_path, server.ignore) == (
        ("serve", "--at", "{port}"),
        "/v2/health/ready",
        ("id",),
    )
    assert (server.cwd, server.stop_signal, server.computes_in) == (str(tmp_path), "SIGTERM", "float32")
    assert read_server(written(tmp_path, 'command = "serve {port}"')).ready_path == ""


def test_what_is_written_is_taken(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    server = read_server(
        written(
            tmp_path,
            'command = ["./serve", "{models}", "{port}"]\nmodels = "models"\nbuild = "./build.sh {libtorch} {dir}"\n'
            'tolerance = 0.01\nignore_headers = ["X-Id"]\nrequest_deadline_s = 3\nlimits = { ready = "+20 %" }\n'
            'ready = { log = "listening on", deadline_s = 9 }\nstop = { signal = "SIGINT", deadline_s = 4 }\n',
        )
    )
    assert server.command == (str(tmp_path / "serve"), "{models}", "{port}")
    assert server.models == str(tmp_path / "models")
    assert (server.computes_in, server.ignore_headers, server.request_s) == (0.01, ("x-id",), 3.0)
    assert (server.ready_log, server.ready_path, server.ready_deadline_s) == ("listening on", "", 9.0)
    assert (server.stop_signal, server.stop_deadline_s, server.limits) == ("SIGINT", 4.0, {"ready": 1.2})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "server.toml.command: missing; write how the server is started"),
        ("command = ", "server.toml: not valid TOML"),
        ('commands = "serve"', 'server.toml.commands: unknown key; did you mean "command"?'),
        ("command = 'serve \"'", "server.toml.command: No closing quotation"),
        ('command = "serve {prot}"', "server.toml.command: {prot} stands for nothing; placeholders are {python}"),
        ('command = "serve {models}"', "server.toml.models: missing"),
        ('command = "s"\nmodels = "gone"', "server.toml.models: "),
        (
            'command = "s"\nprotocol = "grpc"',
            'server.toml.protocol: expected one of v2, torchserve, tensorflow, http, got "grpc"',
        ),
        ('command = "s"\nready = { path = "x" }', "server.toml.ready.path: expected a path that begins with"),
        ('command = "s"\nready = { path = "/x", log = "y" }', "server.toml.ready: path beside log"),
        ('command = "s"\nready = { log = "(" }', "server.toml.ready.log: no regular expression"),
        ('command = "s"\nstop = { signal = "TERM" }', 'server.toml.stop.signal: "TERM" is no signal'),
        ('command = "s"\ntolerance = 1', "server.toml.tolerance: expected a number > 0"),
        ('command = "s"\ntolerance = 0.01\ncomputes_in = "float16"', "server.toml: computes_in beside tolerance"),
        ('command = "s"\nenvironment = { A = "{x}" }', "server.toml.environment.A: {x} stands for nothing"),
    ],
)
def test_a_mistake_is_named_by_its_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_server(written(tmp_path, text))
    assert str(refused.value).removeprefix(f"{tmp_path}/").startswith(words)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gone.toml cannot be read: No such file"):
        read_server(tmp_path / "gone.toml")


def test_the_guide_has_every_key() -> None:
    guide = (PROJECT / "docs" / "guide" / "shadow.md").read_text(encoding="utf-8")
    keys = [*SERVER.keys, *(key for table in SERVER.keys.values() if isinstance(table, Table) for key in table.keys)]
    assert [key for key in keys if f"`{key}" not in guide] == []
