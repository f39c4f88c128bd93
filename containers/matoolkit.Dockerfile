# Every part; which one runs is said when the container starts. State goes to the volume /data, or to a database.
#
#   docker build --file containers/matoolkit.Dockerfile --tag matoolkit .
#   docker run --read-only --tmpfs /tmp --volume data:/data matoolkit migrate
#
# A tag can move. Where builds have to repeat to the byte, pass PYTHON=python:3.12-slim-bookworm@sha256:... of your copy.
ARG PYTHON=python:3.12-slim-bookworm

FROM ${PYTHON} AS build
COPY requirements/all.txt /requirements.txt
RUN python -m venv --without-pip /opt/matoolkit \
    && python -m pip --python /opt/matoolkit/bin/python install \
        --no-cache-dir --require-hashes --only-binary :all: --requirement /requirements.txt
COPY src/matoolkit /opt/matoolkit/lib/python3.12/site-packages/matoolkit
RUN python -m compileall -q /opt/matoolkit/lib/python3.12/site-packages/matoolkit

FROM ${PYTHON}
RUN groupadd --system --gid 10001 matoolkit \
    && useradd --system --uid 10001 --gid matoolkit --home-dir /srv/matoolkit --create-home matoolkit \
    && install --directory --owner=matoolkit --group=matoolkit --mode=0700 /data
COPY --from=build /opt/matoolkit /opt/matoolkit
ENV PATH="/opt/matoolkit/bin:${PATH}" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HEALTH_CHECK_PORT=8081 \
    MATOOLKIT_DATA=/data
WORKDIR /srv/matoolkit
USER 10001:10001
VOLUME /data
# Scheduler, orchestrator and worker tell how they are at a port of their own; the API and `up` where they listen.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-m", "matoolkit.hosts.probe"]
ENTRYPOINT ["python", "-m", "matoolkit"]
CMD ["--help"]
