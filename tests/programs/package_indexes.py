"""Package indexes under their real addresses: a proxy that answers in their place, with tiny wheels of torch."""

import contextlib
import re
import socketserver
import ssl
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PYTORCH, PYPI, MIRROR = "download.pytorch.org", "pypi.org", "mirror.example"


@dataclass(kw_only=True)
class Indexes:
    """What a host answers: path of a simple page -> releases of torch; a host that is missing cannot be reached.

    Attributes:
        silent: hosts that accept a connection and never say anything.
        asked: what was asked, as ``host/path``; of a host that cannot be reached, its name.
        environ: what makes an installer reach them; its cache is empty.
    """

    pages: dict[str, dict[str, Sequence[str]]]
    silent: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    environ: dict[str, str] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)


def wheel(folder: Path, release: str) -> Path:
    """Write a wheel that has nothing but the metadata of ``release``."""
    path, info = folder / f"torch-{release}-py3-none-any.whl", f"torch-{release}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {release}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def certificate(folder: Path, hosts: Sequence[str]) -> tuple[Path, Path, Path]:
    """Return an authority's certificate, one of ``hosts`` by it, and the key of that one; made by openssl 3."""
    authority, made, key = (folder / name for name in ("authority.pem", "hosts.pem", "hosts.key"))
    new = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    own_key = folder / "authority.key"
    names = ",".join(f"DNS:{host}" for host in hosts)
    for command in (
        [*new, "-subj", "/CN=authority", "-keyout", str(own_key), "-out", str(authority)],
        [
            *new,
            "-subj",
            "/CN=hosts",
            "-keyout",
            str(key),
            "-out",
            str(made),
            "-CA",
            str(authority),
            "-CAkey",
            str(own_key),
        ]
        + ["-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return authority, made, key


@contextlib.contextmanager
def serving(folder: Path, pages: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[Indexes]:
    """Give the indexes; ``folder`` gets their wheels, their certificate and the installer's cache."""
    indexes = Indexes(pages={host: dict(each) for host, each in pages.items()})
    authority, made, key = certificate(folder, (PYTORCH, PYPI, MIRROR))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            host = self.rfile.readline().split()[1].decode().partition(":")[0]
            while self.rfile.readline().strip():
                pass
            if host in indexes.silent:
                indexes.ended.wait(30)
                return
            if host not in indexes.pages:
                indexes.asked.append(host)
                self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                return
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with contextlib.suppress(OSError), context.wrap_socket(self.connection, server_side=True) as secure:
                with secure.makefile("rwb") as stream:
                    while words := stream.readline().split():
                        while stream.readline().strip():
                            pass
                        self._answer(stream, words[0].decode(), host, words[1].decode())

        def _answer(self, stream, method: str, host: str, path: str) -> None:  # type: ignore[no-untyped-def]
            indexes.asked.append(f"{host}{path}")
            body, kind, status = b"", "text/html", "404 Not Found"
            found = re.fullmatch(r".*/torch-([^/]+)-py3-none-any\.whl", path.replace("%2B", "+"))
            if path in indexes.pages[host]:
                links = [f"torch-{release}-py3-none-any.whl" for release in indexes.pages[host][path]]
                body = "".join(f'<a href="{link.replace("+", "%2B")}">{link}</a>\n' for link in links).encode()
                status = "200 OK"
            elif found:
                body, kind, status = wheel(folder, found[1]).read_bytes(), "application/octet-stream", "200 OK"
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            stream.write(head.encode() + (body if method != "HEAD" else b""))
            stream.flush()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        indexes.environ = {
            **dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"), address),
            "NO_PROXY": "",
            "SSL_CERT_FILE": str(authority),
            "UV_CACHE_DIR": str(folder / "cache"),
            "PIP_CONFIG_FILE": "/dev/null",
            **dict.fromkeys(("PIP_CERT", "REQUESTS_CA_BUNDLE"), str(authority)),
            "PIP_NO_CACHE_DIR": "1",
        }
        try:
            yield indexes
        finally:
            indexes.ended.set()
            server.shutdown()
            thread.join(10)
