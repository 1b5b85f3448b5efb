# The image of every process of Sendwright. The command of a container selects the process.
ARG NODE=node:24-bookworm-slim

FROM ${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build

FROM ${NODE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund
# Temporal's native part comes for every system; this one needs its own.
RUN find node_modules/@temporalio/core-bridge/releases -mindepth 1 -maxdepth 1 \
  ! -name "$(uname -m)-unknown-linux-gnu" -exec rm -r {} +

# The simulated providers are for trying things out; they run from source, with development's packages.
FROM build AS simulator
RUN install -d -o node -g node /var/lib/sendwright/inbox
ENV SIMULATOR_FOLDER=/var/lib/sendwright/inbox
USER node
CMD ["node", "--import", "tsx", "dev/simulator/main.ts"]

FROM ${NODE} AS runtime
# Node 24 gives young objects two spaces of up to 64 MB: with 16 the API takes 77 MB less memory, and no more processor time.
ENV NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=16
WORKDIR /app
# Temporal's client trusts the system's authorities, which slim images leave out.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
# A volume that is empty takes its owner from here.
RUN install -d -o node -g node /var/lib/sendwright/attachments
COPY package.json ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
USER node
EXPOSE 3000
HEALTHCHECK --interval=15s --timeout=5s --start-period=180s --start-interval=2s --retries=4 CMD ["node", "dist/src/main/health-check.js"]
CMD ["node", "dist/src/main/api.js"]
