# syntax=docker/dockerfile:1
# All programs in one image, for a user without rights. The cartridge comes with
# gym-super-mario-bros from PyPI; nothing else of the game is in it.
#   docker build -t warpzone .
#   docker build -t warpzone:cuda --build-arg VARIANT=cuda .
ARG PYTHON=3.11
ARG VARIANT=cpu

FROM python:${PYTHON}-slim-bookworm AS base
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1

FROM base AS build
# nes-py and the native core are built from source.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH

# The wheels of PyPI bring CUDA along, some gigabytes of it.
FROM build AS build-cpu
ENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu

FROM build AS build-cuda
ENV PIP_EXTRA_INDEX_URL=

# hadolint ignore=DL3006
FROM build-${VARIANT} AS installed
WORKDIR /opt/warpzone
COPY . .
RUN pip install --no-cache-dir -c constraints.txt -e ".[video]" \
    && python -c "import actor.env.native._console"

FROM base AS run
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin warpzone \
    && install --directory --owner=10001 --group=10001 --mode=0700 /runs /keys
COPY --from=installed /opt/venv /opt/venv
COPY --from=installed /opt/warpzone /opt/warpzone
ENV PATH=/opt/venv/bin:$PATH HOME=/tmp
WORKDIR /opt/warpzone
USER 10001:10001
VOLUME /runs
STOPSIGNAL SIGTERM
ENTRYPOINT ["python"]
CMD ["launch/local.py", "--preset", "laptop", "--device", "cpu", "--runs-dir", "/runs", "--plain"]
