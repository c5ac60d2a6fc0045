FROM todo:todo AS toolchain
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ccache=todo \
        cmake=todo \
        git=todo \
        ninja-build=todo \
        patch=todo \
        python3-dev=todo \
        python3-venv=todo \
    && rm -rf /var/lib/apt/lists/*
ENV UV_SYSTEM_CERTS=1 UV_LINK_MODE=copy UV_NO_PROGRESS=1 \
    PATH=/opt/vllm/bin:/opt/uv/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    TORCH_CUDA_ARCH_LIST="12.1a" \
    CUTE_DSL_ARCH=sm_121a \
    FLASH_KDA_CUDA_ARCHS="121a"
COPY uv.txt /build/
RUN python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --no-cache-dir --require-hashes --requirement /build/uv.txt
RUN --mount=type=bind,source=todo,target=/build/requirements.txt \
    --mount=type=cache,target=/root/.cache/uv \
    uv venv --python /usr/bin/python3 /opt/vllm \
    && uv pip install \
        --python /opt/vllm/bin/python \
        --no-deps --require-hashes --only-binary :all: \
        --requirement /build/requirements.txt

FROM toolchain AS vllm
RUN --mount=type=bind,source=fetch_source.sh,target=/build/fetch_source.sh \
    bash /build/fetch_source.sh \
        https://github.com/local-inference-lab/vllm \
        c687594b8a8082e18af9fe2f64eb5f9ee442e251 \
        todo \
        /src/vllm
ARG JOB_GIB
RUN --mount=type=bind,source=build_wheel.sh,target=/build/build_wheel.sh \
    --mount=type=cache,target=/root/.cache/ccache,sharing=locked \
    bash /build/build_wheel.sh /src/vllm /wheels

FROM toolchain AS b12x
RUN --mount=type=bind,source=fetch_source.sh,target=/build/fetch_source.sh \
    bash /build/fetch_source.sh \
        https://github.com/local-inference-lab/b12x \
        f1c4e9dd5b1d841c10cda70ee49c3190cf3db0be \
        todo \
        /src/b12x
ARG JOB_GIB
RUN --mount=type=bind,source=build_wheel.sh,target=/build/build_wheel.sh \
    --mount=type=cache,target=/root/.cache/ccache,sharing=locked \
    bash /build/build_wheel.sh /src/b12x /wheels

FROM toolchain AS lmcache
RUN --mount=type=bind,source=fetch_source.sh,target=/build/fetch_source.sh \
    bash /build/fetch_source.sh \
        https://github.com/local-inference-lab/LMCache \
        29bc5a2efde737c436b04499eb62cd1776cebeec \
        5a88a1ea9d2627c76288d056e7193f7454669b64 \
        /src/lmcache
ARG JOB_GIB
RUN --mount=type=bind,source=build_wheel.sh,target=/build/build_wheel.sh \
    --mount=type=cache,target=/root/.cache/ccache,sharing=locked \
    bash /build/build_wheel.sh /src/lmcache /wheels

FROM toolchain AS flashkda
RUN --mount=type=bind,source=fetch_source.sh,target=/build/fetch_source.sh \
    bash /build/fetch_source.sh \
        https://github.com/vllm-project/FlashKDA \
        3b225bf26bb8e218928a1fe14751cb48cf31d11b \
        e8cf226562e56d0817462de76a614d32a83409ef \
        /src/flashkda
ARG JOB_GIB
RUN --mount=type=bind,source=build_wheel.sh,target=/build/build_wheel.sh \
    --mount=type=cache,target=/root/.cache/ccache,sharing=locked \
    bash /build/build_wheel.sh /src/flashkda /wheels

FROM toolchain AS deepgemm
RUN --mount=type=bind,source=fetch_source.sh,target=/build/fetch_source.sh \
    bash /build/fetch_source.sh \
        https://github.com/deepseek-ai/DeepGEMM \
        8b1392b978f5a03c828dd1711090d7fb50958b8a \
        todo \
        /src/deepgemm
ARG JOB_GIB
RUN --mount=type=bind,source=build_wheel.sh,target=/build/build_wheel.sh \
    --mount=type=cache,target=/root/.cache/ccache,sharing=locked \
    bash /build/build_wheel.sh /src/deepgemm /wheels

FROM toolchain AS assembled
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN \
    --mount=type=bind,from=vllm,source=/wheels,target=/wheels/vllm \
    --mount=type=bind,from=b12x,source=/wheels,target=/wheels/b12x \
    --mount=type=bind,from=lmcache,source=/wheels,target=/wheels/lmcache \
    --mount=type=bind,from=flashkda,source=/wheels,target=/wheels/flashkda \
    --mount=type=bind,from=deepgemm,source=/wheels,target=/wheels/deepgemm \
    uv pip install --python /opt/vllm/bin/python --no-deps --no-index /wheels/*/*.whl
RUN --mount=type=bind,source=todo,target=/build/torch.patch \
    echo "todo  /build/torch.patch" | sha256sum --check --strict \
    && site=$(/opt/vllm/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
    && patch --batch --forward --strip 1 --directory "$site" --input /build/torch.patch
RUN --mount=type=bind,source=todo,target=/build/torch.patch \
    echo "todo  /build/torch.patch" | sha256sum --check --strict \
    && site=$(/opt/vllm/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
    && patch --batch --forward --strip 1 --directory "$site" --input /build/torch.patch
RUN --mount=type=bind,source=todo,target=/build/cutlass.patch \
    echo "todo  /build/cutlass.patch" | sha256sum --check --strict \
    && site=$(/opt/vllm/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
    && patch --batch --forward --strip 1 --directory "$site" --input /build/cutlass.patch
RUN --mount=type=bind,source=gpus.py,target=/build/gpus.py \
    /opt/vllm/bin/python /build/gpus.py \
        --gpu sm_121a \
        vllm lmcache flash_kda
RUN /opt/vllm/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/vllm/lib \
    || echo "some files don't compile: each of them stays as it is"

FROM todo:todo
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        gcc=todo \
        libc6-dev=todo \
        liburing-dev=todo \
        liburing2=todo \
        pkg-config=todo \
        python3=todo \
    && rm -rf /var/lib/apt/lists/*
COPY --from=assembled /opt/vllm /opt/vllm
ENV PATH=/opt/vllm/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    TORCH_CUDA_ARCH_LIST="12.1a" \
    CUTE_DSL_ARCH=sm_121a \
    VLLM_NO_USAGE_STATS=1
RUN --mount=type=bind,source=verify.py,target=/run/verify.py \
    python /run/verify.py \
        --machine aarch64 \
        --python todo \
        --cuda 13.2 \
        --version torch=2.13.0 \
        --version flashinfer-python=0.6.17 \
        --library liburing=2.5 \
        --import torch \
        --import vllm \
        --import b12x \
        --import flashinfer \
        --import lmcache \
        --import flash_kda \
        --import deep_gemm
RUN --mount=type=bind,source=declared.py,target=/run/declared.py \
    python /run/declared.py
RUN --mount=type=bind,source=flags.py,target=/run/flags.py \
    mkdir -p /usr/share/pyinfra-vllm \
    && python /run/flags.py > /usr/share/pyinfra-vllm/flags.json
ENTRYPOINT []
CMD ["vllm", "serve", "--help"]
