# The worker alone. Runs as nobody in particular, writes nothing, opens one port for health checks.
#
#   docker build --file containers/worker.Dockerfile --tag worker .
#   docker run --read-only --tmpfs /tmp worker
#
# A tag can move. Where builds have to repeat to the byte, pass PYTHON=python:3.12-slim-bookworm@sha256:... of your copy.
ARG PYTHON=python:3.12-slim-bookworm

FROM ${PYTHON} AS build
COPY requirements/azure.txt /requirements.txt
RUN python -m venv --without-pip /opt/matoolkit \
    && python -m pip --python /opt/matoolkit/bin/python install \
        --no-cache-dir --require-hashes --only-binary :all: --requirement /requirements.txt
COPY src/matoolkit /opt/matoolkit/lib/python3.12/site-packages/matoolkit
RUN python -m compileall -q /opt/matoolkit/lib/python3.12/site-packages/matoolkit

FROM ${PYTHON}
RUN groupadd --system --gid 10001 matoolkit \
    && useradd --system --uid 10001 --gid matoolkit --home-dir /srv/matoolkit --create-home matoolkit
COPY --from=build /opt/matoolkit /opt/matoolkit
ENV PATH="/opt/matoolkit/bin:${PATH}" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HEALTH_CHECK_PORT=8080
WORKDIR /srv/matoolkit
USER 10001:10001
EXPOSE 8080
# Degraded is an answer too; only 503 and silence are failures.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"HEALTH_CHECK_PORT\"]}/health', timeout=4)"]
ENTRYPOINT ["python", "-m", "matoolkit", "worker"]
