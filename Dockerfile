# dcem with everything it needs, for work without a network:
#   docker build -t dcem .
#   docker run --rm --network none -v "$PWD:/work" --user "$(id -u):$(id -g)" dcem audit table.csv --label ...
FROM python:3.12-slim

# LightGBM's OpenMP runtime is the only system library the wheels do not bring.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml constraints.txt README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir -c /src/constraints.txt '/src[networks,report,app,formats,sepsis,onnx]' && rm -rf /src

# Nothing runs as root, and whoever runs it may be any user: caches go where anybody may write.
RUN useradd --create-home dcem
USER dcem
ENV MPLCONFIGDIR=/tmp/matplotlib HOME=/tmp OMP_WAIT_POLICY=PASSIVE
WORKDIR /work
ENTRYPOINT ["dcem"]
CMD ["--help"]
