# The images of evenflow, one target each: partitioner, spark, controller, tools.
#
#   docker build --target partitioner -t evenflow/partitioner:0.1.0 .          (docs/deploy.md; needs BuildKit)
#
# BASE: a Debian with Python 3.11 and venv. What is missing for Spark is a Java 17 runtime, which is then installed.
# CLOUD: s3 adds what checkpoints in an object store (s3a://) need to the spark image.
# CPU, FEATURES: what kernels are compiled for (names of LLVM); on ARM: --build-arg CPU=generic.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS base
RUN groupadd --gid 10001 evenflow && useradd --uid 10001 --gid evenflow --no-create-home --home-dir /tmp evenflow \
 && install -d -o evenflow -g evenflow /var/lib/evenflow /etc/evenflow
ARG CPU=x86-64-v3
ARG FEATURES=
# Whoever runs an image may keep its root file system read-only: what is written goes to /tmp and to /var/lib/evenflow.
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/opt/cache \
    XDG_STATE_HOME=/var/lib \
    NUMBA_CACHE_DIR=/opt/cache/numba \
    NUMBA_CPU_NAME=${CPU} \
    NUMBA_CPU_FEATURES=${FEATURES} \
    EVENFLOW_PARTITIONER__WEB_HOST=0.0.0.0 EVENFLOW_PARTITIONER__WEB_PORT=8080 \
    EVENFLOW_SPARK__WEB_HOST=0.0.0.0 EVENFLOW_SPARK__WEB_PORT=8080 \
    EVENFLOW_CONTROL__WEB_HOST=0.0.0.0 EVENFLOW_CONTROL__WEB_PORT=8080
WORKDIR /etc/evenflow
EXPOSE 8080
# Unhealthy after 60 to 90 s of it: some supervisors restart a container for that, and a stage may pause for a while.
HEALTHCHECK --interval=30s --timeout=10s --retries=3 --start-period=120s CMD ["evenflow", "health"]
ENTRYPOINT ["evenflow"]
LABEL org.opencontainers.image.title=evenflow org.opencontainers.image.licenses=Apache-2.0

# Packages before sources: a change of the code installs nothing anew.
FROM base AS packages
WORKDIR /opt/evenflow
COPY pyproject.toml requirements.lock requirements.hashed.lock README.md LICENSE ./
COPY docker/hashed.py docker/
RUN python3 -m venv /opt/venv && mkdir evenflow && touch evenflow/__init__.py
COPY docker/install.sh /usr/local/bin/evenflow-install

FROM packages AS partitioner-packages
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=cache,target=/root/.cache/pip \
    evenflow-install partitioner
FROM packages AS controller-packages
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=cache,target=/root/.cache/pip \
    evenflow-install controller
FROM packages AS spark-packages
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=cache,target=/root/.cache/pip \
    evenflow-install spark,controller
FROM packages AS tools-packages
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=cache,target=/root/.cache/pip \
    evenflow-install tools

FROM base AS java
COPY docker/java.sh /usr/local/bin/evenflow-java
RUN evenflow-java
ENV JAVA_HOME=/usr/lib/jvm/default

# The connector's jars, once: only this stage needs Java while it is built.
FROM java AS spark-jars
COPY --from=spark-packages /opt/venv /opt/venv
COPY . /opt/evenflow
WORKDIR /opt/evenflow
ARG CLOUD=
RUN python -m spark_consumers.jars.fetch connector ${CLOUD} \
 && ln -s /opt/cache/evenflow/jars/*kafka-0-10*/ /opt/connector \
 && if [ -n "${CLOUD}" ]; then ln -s /opt/cache/evenflow/jars/*hadoop-aws*/ /opt/cloud; else mkdir /opt/cloud; fi

# Kernels are compiled here, for all that use them: their cache goes by the time of their sources, so that is fixed.
FROM partitioner-packages AS kernels
COPY . /opt/evenflow
RUN find /opt/evenflow -exec touch -h -d 2000-01-01T00:00:00Z {} + \
 && python -m partitioner_service.precompile && chmod -R a+rX /opt/cache

FROM base AS sources
COPY --from=kernels /opt/evenflow /opt/evenflow
COPY --from=kernels /opt/cache /opt/cache
ARG VERSION=0.1.0
LABEL org.opencontainers.image.version=${VERSION}
USER 10001:10001

FROM sources AS partitioner
COPY --from=partitioner-packages /opt/venv /opt/venv
CMD ["partition"]

FROM sources AS controller
COPY --from=controller-packages /opt/venv /opt/venv
CMD ["control"]

# What Spark's own scheduler starts for an executor is this image with `python -m spark_consumers.cluster.executor_pod`.
FROM java AS spark
COPY --from=sources /opt/evenflow /opt/evenflow
COPY --from=sources /opt/cache /opt/cache
COPY --from=spark-jars /opt/cache /opt/cache
COPY --from=spark-jars /opt/connector /opt/connector
COPY --from=spark-jars /opt/cloud /opt/cloud
COPY --from=spark-packages /opt/venv /opt/venv
ENV EVENFLOW_SPARK__EXECUTOR_JARS=/opt/connector/*:/opt/cloud/*
ARG VERSION=0.1.0
LABEL org.opencontainers.image.version=${VERSION}
USER 10001:10001
CMD ["aggregate"]

# What verify needs beside memory goes to /tmp.
FROM sources AS tools
ENV XDG_CACHE_HOME=/tmp/cache
COPY --from=tools-packages /opt/venv /opt/venv
HEALTHCHECK NONE
CMD ["--help"]
