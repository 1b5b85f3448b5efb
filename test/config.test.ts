import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ConfigError, readConfig, type SettingName } from '../src/config.ts';
import { SETTINGS } from '../src/settings.ts';

interface Expectation {
  /** The value of a setting that is not set. */
  readonly fallback: unknown;
  /** Text and parsed value. */
  readonly good: readonly (readonly [text: string, value: unknown])[];
  readonly bad: readonly string[];
  /** Other settings that these values need. */
  readonly beside?: Readonly<Record<string, string>>;
}

const any = (...texts: string[]): Expectation['good'] => texts.map((text) => [text, text]);
const NO_NUMBERS = ['x', '-1', '1.5', '1e3', '0x10', ' 1', '1 ', '1,000', '٣', 'NaN', 'Infinity'];
const NO_DURATIONS = [
  ...['x', '5', '5 s', 's', '-5s', '1.5s', '5S', '5sec', '1m30s', '0s', '0ms', '00m', '1d', '721h'],
  '9'.repeat(400) + 'h',
];
const DURATIONS: Expectation['good'] = [
  ['1ms', 1],
  ['500ms', 500],
  ['5s', 5_000],
  ['10m', 600_000],
  ['24h', 86_400_000],
  ['720h', 2_592_000_000],
];

const number = (fallback: number, min: number, max: number): Expectation => ({
  fallback,
  good: [min, max].map((value) => [String(value), value]),
  bad: [String(max + 1), ...(min > 0 ? [String(min - 1)] : []), ...NO_NUMBERS],
});
const limit = (fallback: number): Expectation => number(fallback, 0, 1_000_000_000);

const EXPECTED: Readonly<Record<SettingName, Expectation>> = {
  PORT: number(3_000, 0, 65_535),
  HOST: { fallback: '127.0.0.1', good: any('0.0.0.0', '::', 'localhost'), bad: [] },
  METRICS_PORT: { fallback: undefined, good: [['9464', 9_464]], bad: ['0', '65536', ...NO_NUMBERS] },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    fallback: undefined,
    good: any('http://localhost:4318', 'https://traces.example.com/otlp'),
    bad: ['localhost:4318', 'grpc://localhost:4317', 'x'],
  },
  TRUST_PROXY: {
    fallback: undefined,
    good: [
      ['10.0.0.0/8', ['10.0.0.0/8']],
      ['127.0.0.1,::1', ['127.0.0.1', '::1']],
    ],
    bad: ['x', 'true', 'loopback', '10.0.0.0/33'],
  },
  DATABASE_URL: {
    fallback: undefined,
    good: [...any('postgres://u:p@h:1/d', 'postgresql://h/d?sslmode=require'), ['postgres://h/d/', 'postgres://h/d']],
    bad: ['x', '/tmp/x', 'mysql://h/d', '//h/d', 'postgres://h:x/d', 'postgres://[h/d'],
  },
  SECRET_KEY: {
    fallback: undefined,
    good: any('x'.repeat(32), 'a long text with spaces and ünïcode'),
    bad: ['x', 'x'.repeat(31), 'secret'],
  },
  SECRET_KEY_OLD: {
    fallback: undefined,
    good: [
      ['x'.repeat(32), ['x'.repeat(32)]],
      [`a key with a comma, ${'x'.repeat(32)}\n\n`, [`a key with a comma, ${'x'.repeat(32)}`]],
      [`${'x'.repeat(32)}, ${'y'.repeat(40)}`, ['x'.repeat(32), 'y'.repeat(40)]],
    ],
    bad: ['x', ',', `${'x'.repeat(32)},`, `${'x'.repeat(32)},y`],
  },
  PUBLIC_URL: {
    fallback: undefined,
    good: [...any('https://mail.example.com', 'http://10.0.0.1:3000'), ['https://h/', 'https://h']],
    bad: ['x', 'mail.example.com', 'ftp://h', '/v1'],
  },
  LINK_URL: {
    fallback: undefined,
    good: [...any('https://links.example.com'), ['https://h/', 'https://h']],
    bad: ['x', 'links.example.com', '/v1'],
  },
  SYSTEM_EMAIL_FROM: {
    fallback: undefined,
    good: any('accounts@example.com', 'Sendwright <accounts@example.com>'),
    bad: ['x', 'a@b', 'a@example.com, b@example.com'],
  },
  OIDC_ISSUER: {
    fallback: undefined,
    good: any(
      'https://login.example.com',
      'https://login.example.com/realms/x/',
      'http://127.0.0.1:8080',
      'http://localhost:1',
    ),
    bad: ['x', 'http://login.example.com', 'ftp://login.example.com'],
  },
  OIDC_CLIENT_ID: { fallback: undefined, good: any('sendwright'), bad: [] },
  OIDC_CLIENT_SECRET: { fallback: undefined, good: any('a secret'), bad: [] },
  OIDC_NAME: { fallback: 'single sign-on', good: any('Example Login'), bad: [] },
  DOCS_SENDER_DOMAIN: { fallback: undefined, good: any('mail.example.com'), bad: [] },
  TEMPORAL_UI_URL: {
    fallback: undefined,
    good: [...any('https://temporal.example.com', 'http://127.0.0.1:8233'), ['https://h/ui/', 'https://h/ui']],
    bad: ['x', 'temporal.example.com', 'ftp://h', '/ui'],
  },
  ATTACHMENT_STORE: {
    fallback: undefined,
    good: any('file:./attachments', 'file:/var/lib/x', 'file:///var/lib/x', 's3://bucket', 's3://bucket/prefix'),
    bad: ['x', './attachments', '/var/lib/x', 'file:', 's3:', 's3://', 's3:bucket', 'S3://bucket', 'https://h/b'],
  },
  ATTACHMENT_ALLOW_CIDRS: {
    fallback: undefined,
    good: [
      ['10.1.0.0/16', ['10.1.0.0/16']],
      ['10.1.0.0/16, fd00::/8,192.168.5.5', ['10.1.0.0/16', 'fd00::/8', '192.168.5.5']],
    ],
    bad: ['x', '10.1.0.0/33', '10.1.0/99', 'localhost', 'example.com/8', '::/129'],
  },
  WEBHOOK_ALLOW_CIDRS: {
    fallback: undefined,
    good: [['127.0.0.0/8,::1', ['127.0.0.0/8', '::1']]],
    bad: ['x', 'localhost', '127.0.0.1/33'],
  },
  DNS_SERVERS: {
    fallback: undefined,
    good: [
      ['127.0.0.1', ['127.0.0.1']],
      ['127.0.0.1:5353, ::1,[::1]:53', ['127.0.0.1:5353', '::1', '[::1]:53']],
    ],
    bad: ['x', ',', 'dns.example.com', '1.1.1', '1.1.1.1:0', '1.1.1.1:65536', '[1.1.1.1', '1.1.1.1,x', 'udp://1.1.1.1'],
  },
  SENDWRIGHT_HOME: { fallback: '.sendwright', good: any('/var/lib/x', '.', 'a b'), bad: [] },
  SENDWRIGHT_URL: {
    fallback: undefined,
    good: [
      ['http://127.0.0.1:3000', 'http://127.0.0.1:3000'],
      ['https://mail.example.com/base/', 'https://mail.example.com/base'],
    ],
    bad: ['mail.example.com', 'ftp://mail.example.com', '3000'],
  },
  SENDWRIGHT_API_KEY: { fallback: undefined, good: any('sw_live_x'), bad: ['x', 'sw_live_ x', 'sw_live_x\n', ' '] },
  LOG_LEVEL: {
    fallback: 'info',
    good: any('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    bad: ['INFO', 'warning', 'x', '30', ' info', 'constructor'],
  },
  EMAIL_PROVIDERS: {
    fallback: undefined,
    good: [
      ['postmark', ['postmark']],
      ['smtp', ['smtp']],
      ['postmark,smtp', ['postmark', 'smtp']],
      ['smtp, postmark', ['smtp', 'postmark']],
    ],
    bad: ['x', 'Postmark', 'postmark,', ',smtp', 'postmark,,smtp', 'smtp,smtp', 'postmark smtp', 'postmark;smtp'],
  },
  POSTMARK_SERVER_TOKEN: { fallback: undefined, good: any('token'), bad: [] },
  POSTMARK_ACCOUNT_TOKEN: { fallback: undefined, good: any('00000000-0000-0000-0000-000000000000'), bad: [] },
  POSTMARK_BASE_URL: {
    fallback: 'https://api.postmarkapp.com',
    good: [...any('http://127.0.0.1:1', 'https://h'), ['https://h/', 'https://h'], ['https://h/a//', 'https://h/a']],
    bad: ['x', 'h', 'ftp://h', 'api.postmarkapp.com', 'https//h', 'javascript:x'],
  },
  POSTMARK_MESSAGE_STREAM: { fallback: 'outbound', good: any('broadcast'), bad: [] },
  POSTMARK_BROADCAST_STREAM: { fallback: 'broadcast', good: any('news'), bad: [] },
  POSTMARK_WEBHOOK_USER: { fallback: undefined, good: any('postmark'), bad: [] },
  POSTMARK_WEBHOOK_PASSWORD: { fallback: undefined, good: any('a long random text'), bad: [] },
  SMTP_URL: {
    fallback: undefined,
    good: any('smtp://h', 'smtps://u:p@h:465'),
    bad: ['x', 'h:25', 'http://h', 'mailto:a@h', 'smtp//h'],
  },
  TWILIO_ACCOUNT_SID: {
    fallback: undefined,
    good: any(`AC${'0a'.repeat(16)}`),
    bad: ['x', 'AC', `AC${'0'.repeat(31)}`, `AC${'0'.repeat(33)}`, `SM${'0'.repeat(32)}`, `AC${'g'.repeat(32)}`],
  },
  TWILIO_AUTH_TOKEN: { fallback: undefined, good: any('a token'), bad: [] },
  TWILIO_BASE_URL: {
    fallback: 'https://api.twilio.com',
    good: [...any('http://127.0.0.1:1', 'https://h'), ['https://h/', 'https://h']],
    bad: ['x', 'ftp://h', 'api.twilio.com'],
  },
  META_ACCESS_TOKEN: { fallback: undefined, good: any('a token'), bad: [] },
  META_APP_SECRET: { fallback: undefined, good: any('a secret'), bad: [] },
  META_VERIFY_TOKEN: { fallback: undefined, good: any('a token'), bad: [] },
  META_BASE_URL: {
    fallback: 'https://graph.facebook.com',
    good: [...any('http://127.0.0.1:1', 'https://h'), ['https://h/', 'https://h']],
    bad: ['x', 'ftp://h', 'graph.facebook.com'],
  },
  CHATAPP_WINDOW: { fallback: 'known', good: any('known', 'enforce', 'off'), bad: ['Known', 'true', 'toString'] },
  NUMBER_MESSAGES_PER_SECOND: number(80, 1, 10_000),
  MAX_BODY_BYTES: number(45_088_768, 1, 1_073_741_824),
  MAX_CONNECTIONS: number(10_000, 1, 1_000_000),
  RATE_LIMIT_RPS: limit(10_000),
  RATE_LIMIT_MAILS_PER_SECOND: limit(10_000),
  BODY_RETENTION_DAYS: number(0, 0, 36_500),
  EMAIL_RETENTION_DAYS: {
    fallback: 0,
    good: [0, 31, 36_500].map((days) => [String(days), days]),
    bad: ['1', '30', '36501', ...NO_NUMBERS],
  },
  REQUEST_LOG_DAYS: number(7, 0, 400),
  RATE_LIMIT_DOMAINS_PER_SECOND: limit(2),
  LIMIT_ENDPOINTS: limit(20),
  LIMIT_DOMAINS: limit(100),
  LIMIT_KEYS: limit(100),
  LIMIT_NUMBERS: limit(50),
  LIMIT_RECEIVED_PER_DAY: limit(100_000),
  LIMIT_MEMBERS: limit(100),
  LIMIT_TAG_PAIRS: limit(10_000),
  LIMIT_STORED_MB: limit(51_200),
  RATE_LIMIT_NETWORK_RPS: number(100, 0, 1_000_000),
  WORKFLOW_STARTS_PER_SECOND: number(20, 1, 1_000_000),
  SEND_MAX_ATTEMPTS: number(16, 1, 1_000),
  SEND_INITIAL_INTERVAL: { fallback: 2_000, good: DURATIONS, bad: NO_DURATIONS, beside: { SEND_MAX_INTERVAL: '720h' } },
  SEND_MAX_INTERVAL: {
    fallback: 1_800_000,
    good: DURATIONS,
    bad: NO_DURATIONS,
    beside: { SEND_INITIAL_INTERVAL: '1ms' },
  },
  CONFIRM_NOT_FOUND_AFTER: { fallback: 60_000, good: [['1s', 1_000]], bad: ['0s', '60', 'later'] },
  GONE_WORKER_WAIT: { fallback: 20_000, good: [['12m', 720_000]], bad: ['0s', '20', 'never'] },
  SHUTDOWN_TIMEOUT: { fallback: 30_000, good: [['2m', 120_000]], bad: ['0s', '30', 'soon'] },
  ACCOUNT_RETRY_FOR: { fallback: 259_200_000, good: [['24h', 86_400_000]], bad: ['0s', '72', 'soon'] },
  AMBIGUOUS_SEND: { fallback: 'retry', good: any('retry', 'fail'), bad: ['Retry', 'ask', 'true', 'toString'] },
  AMBIGUOUS_SEND_MAX_REPEATS: number(1, 0, 100),
};

const read = (name: SettingName, env: Record<string, string>): unknown => readConfig(env)[name];

/** Asserts the message of the error, which is one line. */
function assertError(work: () => unknown, name: SettingName, fault: string): void {
  const { meaning, example } = SETTINGS[name];
  assert.throws(work, (error) => {
    assert.ok(error instanceof ConfigError, String(error));
    assert.equal(error.message, `${name} ${fault}: ${meaning}, for example ${name}=${example}`);
    assert.doesNotMatch(error.message, /\n/);
    return true;
  });
}

it('lists all settings', () => {
  assert.deepEqual(Object.keys(SETTINGS), Object.keys(EXPECTED));
});

for (const [name, { fallback, good, bad, beside = {} }] of Object.entries(EXPECTED) as [SettingName, Expectation][]) {
  describe(name, () => {
    it(`is ${String(fallback)} if it is missing or empty`, () => {
      assert.deepEqual(read(name, {}), fallback);
      assert.deepEqual(read(name, { [name]: '' }), fallback);
    });

    it('takes its own example', () => {
      assert.notEqual(read(name, { ...beside, [name]: SETTINGS[name].example }), undefined);
    });

    for (const [text, value] of good) {
      it(`accepts ${text}`, () => {
        assert.deepEqual(read(name, { ...beside, [name]: text }), value);
      });
    }

    for (const text of bad) {
      it(`refuses ${text.slice(0, 40)} with one line that names it, its meaning and an example`, () => {
        assertError(() => readConfig({ ...beside, [name]: text }), name, 'is malformed');
      });
    }

    if (fallback !== undefined) return;
    it('is reported if it is required and missing', () => {
      assertError(() => readConfig({}, name), name, 'is missing');
      assertError(() => readConfig({ [name]: '' }, name), name, 'is missing');
      const [text = '', value] = good[0] ?? [];
      assert.deepEqual(readConfig({ [name]: text }, name)[name], value);
    });
  });
}

describe('all settings', () => {
  it('reports an error without the value, which may be a secret', () => {
    for (const [name, { bad }] of Object.entries(EXPECTED)) {
      if (bad.length === 0) continue;
      assert.throws(
        () => readConfig({ [name]: 'hush://hush' }),
        (error) => !String(error).includes('hush'),
      );
    }
  });

  it('reports the first of several errors', () => {
    assertError(() => readConfig({ PORT: 'x', LOG_LEVEL: 'x' }, 'DATABASE_URL'), 'PORT', 'is malformed');
  });

  it('ignores unknown settings', () => {
    assert.deepEqual(readConfig({ PATH: '/bin', TEMPORAL_ADDRESS: 'x', port: 'x' }), readConfig({}));
  });

  it('refuses a PUBLIC_URL without https where users sign in by OpenID Connect, except on this machine', () => {
    const fault = 'must begin with https because OIDC_ISSUER is set';
    const OIDC_ISSUER = 'https://login.example.com';
    assertError(() => readConfig({ OIDC_ISSUER, PUBLIC_URL: 'http://mail.example.com' }), 'PUBLIC_URL', fault);
    for (const PUBLIC_URL of ['https://mail.example.com', 'http://localhost:3000', 'http://127.0.0.1:3000', '']) {
      readConfig({ OIDC_ISSUER, PUBLIC_URL });
    }
    readConfig({ PUBLIC_URL: 'http://mail.example.com' });
  });

  it('refuses a longest interval that is shorter than the first', () => {
    const fault = 'is shorter than SEND_INITIAL_INTERVAL';
    assertError(() => readConfig({ SEND_INITIAL_INTERVAL: '1h' }), 'SEND_MAX_INTERVAL', fault);
    assertError(() => readConfig({ SEND_MAX_INTERVAL: '1999ms' }), 'SEND_MAX_INTERVAL', fault);
    const equal = readConfig({ SEND_INITIAL_INTERVAL: '5s', SEND_MAX_INTERVAL: '5s' });
    assert.deepEqual([equal.SEND_INITIAL_INTERVAL, equal.SEND_MAX_INTERVAL], [5_000, 5_000]);
  });
});
