FROM pyinfra-vllm-lab/wheels:1 AS wheels

FROM pyinfra-vllm-lab/debian:bookworm AS venv
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ENV UV_SYSTEM_CERTS=1 UV_LINK_MODE=copy UV_NO_PROGRESS=1
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        binutils=2.40-2 \
    && rm -rf /var/lib/apt/lists/*
COPY uv.txt /build/
RUN python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --no-cache-dir --require-hashes --requirement /build/uv.txt
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    --mount=type=bind,source=requirements.txt,target=/build/requirements.txt \
    --mount=type=cache,target=/root/.cache/uv \
    python3 -m venv --without-pip /opt/vllm \
    && /opt/uv/bin/uv pip install \
        --python /opt/vllm/bin/python \
        --no-deps --require-hashes --only-binary :all: \
        --find-links /wheels \
        --requirement /build/requirements.txt
WORKDIR /opt/vllm/lib/python3.11/site-packages
RUN mkdir "vllm-0.32.0+cpu.dist-info" \
    && printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' "0.32.0+cpu" \
        > "vllm-0.32.0+cpu.dist-info/METADATA" \
    && rm -rf torch/test torch/include torch/bin/test_* torch/bin/protoc* torch/bin/*Test \
    && find sympy networkx -type d -name tests -prune -exec rm -rf {} + \
    && find /opt/vllm/lib -maxdepth 1 -type f ! -name libiomp5.so -delete \
    && strip --strip-unneeded vllm/*.so torch/lib/*.so uvloop/*.so \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        -x 'torch/testing|transformers/models/(?!auto/).*/mod(eling|ular)_' .

FROM pyinfra-vllm-lab/debian:bookworm
COPY --from=venv /opt/vllm /opt/vllm
ENV PATH=/opt/vllm/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    VLLM_TARGET_DEVICE=cpu \
    VLLM_NO_USAGE_STATS=1 \
    VLLM_CPU_OMP_THREADS_BIND=nobind \
    OMP_NUM_THREADS=1 \
    TORCHDYNAMO_DISABLE=1
RUN --mount=type=bind,source=verify.py,target=/run/verify.py \
    python /run/verify.py \
        --machine x86_64 \
        --python 3.11 \
        --version vllm-cpu=0.32.0 \
        --version vllm=0.32.0+cpu \
        --version torch=2.13.0+cpu \
        --import vllm \
        --import vllm.v1.worker.cpu_worker
RUN --mount=type=bind,source=flags.py,target=/run/flags.py \
    mkdir -p /usr/share/pyinfra-vllm \
    && python /run/flags.py > /usr/share/pyinfra-vllm/flags.json
ENTRYPOINT []
CMD ["vllm", "serve", "--help"]
