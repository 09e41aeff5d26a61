# The gate without torch: it installs the releases under test when it runs, into the volume /cache.
# docs/guide/in-ci.md says how to run it. Python 3.11 has wheels of torch 1.13 to 2.15, a later one none of the older.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
COPY . /source
RUN python3 -m venv /opt/gate && /opt/gate/bin/python -m pip install --no-cache-dir uv /source

FROM ${BASE}
COPY --from=build /opt/gate /opt/gate
# Any user may run it, so that reports belong to who mounts their folder: docker run --user "$(id -u)".
RUN useradd --uid 1000 --create-home gate && mkdir /cache /work && chmod 1777 /cache /work /home/gate
# getpass, which torch asks for the name of its cache, finds no other name of a user whom the image does not know.
ENV PATH=/opt/gate/bin:$PATH HOME=/home/gate USER=gate TORCHSCRIPT_GATE_ENVS=/cache/environments UV_CACHE_DIR=/cache/uv
USER gate
WORKDIR /work
VOLUME /cache
ENTRYPOINT ["torchscript-gate"]
CMD ["--help"]
