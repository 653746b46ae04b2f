# One image for every process, which the command selects (see docker-compose.yml).
FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS node

FROM node AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No production package needs its install script. The clients are no part of the service.
RUN npm ci --omit=dev --ignore-scripts --workspaces=false

# The documents at /docs: static files.
FROM node AS documents
WORKDIR /app
COPY . .
RUN npm ci --ignore-scripts --workspaces=false && node dev/docs/build.ts

FROM node AS app
# By default libc and V8 retain 60 MiB more in a worker than it uses, and 25 MiB more in one that reads files, because
# of its many threads and short-lived buffers. These settings return large blocks to the system immediately.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=131072 \
  NODE_OPTIONS=--max-semi-space-size=2
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json package-lock.json ./
COPY platform platform
COPY domain domain
COPY workflows workflows
COPY activities activities
COPY migrations migrations
COPY api api
COPY web web
COPY workers workers
COPY --from=documents /app/.cache/docs .cache/docs
# The workflow bundle is built here, because containers run with a read-only file system.
RUN node --input-type=module --eval "const { loadWorkflowBundle } = await import('/app/workers/workflow-bundle.ts'); await loadWorkflowBundle();"
USER node

# For backup and restore: the database's own image, so that pg_dump has the server's version. Its libraries include Node's.
FROM postgres:18.6@sha256:86c951e05bf56c93d95d397747fb8820ac76cc3bedb78f43abd83eedbe3666ae AS tools
COPY --from=app /usr/local/bin/node /usr/local/bin/node
COPY --from=app /app /app
WORKDIR /app
ENV NODE_ENV=production
USER 1000
ENTRYPOINT ["node"]

FROM app
EXPOSE 3000 3001 2526
CMD ["node", "api/server.ts"]
