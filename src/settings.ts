import ipaddr from 'ipaddr.js';
import { WINDOW_POLICIES } from './domain/chat/window.ts';
import { parseMailbox } from './domain/email/address.ts';
import { EMAIL_PROVIDERS, type EmailProviderName } from './domain/email/email.ts';
import { parseRanges } from './lib/ip-ranges.ts';
import { SECRET_KEY_LENGTH } from './lib/secret-key.ts';

/** The description and the parser of one setting. */
export interface Setting<T> {
  readonly meaning: string;
  readonly example: string;
  /** Parses the text; throws any error for an invalid one. */
  readonly parse: (text: string) => T;
  /** The default, as it is written in the environment. Without it, an absent setting is undefined. */
  readonly fallback?: string;
}

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const MAX_DURATION_MS = 30 * 24 * 3_600_000;

/** `500ms`, `5s`, `10m`, `24h` → milliseconds; positive, and at most 30 days. */
function parseDuration(text: string): number {
  const match = /^(\d+)(ms|s|m|h)$/.exec(text);
  if (!match) throw new Error('not a duration');
  const milliseconds = Number(match[1]) * (UNITS[match[2] as string] as number);
  if (milliseconds === 0 || milliseconds > MAX_DURATION_MS) throw new Error('out of range');
  return milliseconds;
}

function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) throw new Error('out of range');
    return value;
  };
}

function zeroOr(parse: (text: string) => number): (text: string) => number {
  return (text) => (text === '0' ? 0 : parse(text));
}

function oneOf<const T extends string>(...values: T[]): (text: string) => T {
  return (text) => {
    const found = values.find((value) => value === text);
    if (found === undefined) throw new Error('unknown value');
    return found;
  };
}

function url(...protocols: string[]): (text: string) => string {
  return (text) => {
    if (!protocols.includes(new URL(text).protocol)) throw new Error('wrong protocol');
    return text.replace(/\/+$/, '');
  };
}

function providers(text: string): EmailProviderName[] {
  const names = text.split(',').map((name) => oneOf(...EMAIL_PROVIDERS)(name.trim()));
  if (new Set(names).size !== names.length) throw new Error('named twice');
  return names;
}

const text = (value: string): string => value;

/** An https URL; http is for development, on this machine only. */
function issuer(text: string): string {
  if (!isHttpsOrLocal(text)) throw new Error('not https');
  return text;
}

/** Returns true for an https URL, and for an http URL of this machine. */
export function isHttpsOrLocal(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname));
}

function mailbox(text: string): string {
  const parsed = parseMailbox(text);
  if (typeof parsed === 'string') throw new Error(parsed);
  return text;
}

function matching(pattern: RegExp): (text: string) => string {
  return (text) => {
    if (!pattern.test(text)) throw new Error('malformed');
    return text;
  };
}

function ranges(text: string): string[] {
  const given = text.split(',').flatMap((range) => range.trim() || []);
  parseRanges(given);
  return given;
}

function secretKey(text: string): string {
  if (text.length < SECRET_KEY_LENGTH) throw new Error('too short');
  return text;
}

function secretKeys(text: string): string[] {
  const isLines = text.includes('\n');
  const keys = text.split(isLines ? '\n' : ',').map((key) => key.trim());
  return keys.filter((key) => !isLines || key !== '').map(secretKey);
}

/** Addresses with or without a port: `10.0.0.53`, `10.0.0.53:5353`, `fd00::53`, `[fd00::53]:5353`. */
function servers(text: string): string[] {
  const given = text.split(',').flatMap((server) => server.trim() || []);
  if (given.length === 0) throw new Error('none');
  for (const server of given) {
    const [, v6, v4, port] = /^(?:\[(.+)\]|([\d.]+))(?::(\d+))?$/.exec(server) ?? [];
    const address = v6 ?? v4 ?? server;
    const isAddress = ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address);
    if (!isAddress) throw new Error('no address');
    if (port !== undefined) integer(1, 65_535)(port);
  }
  return given;
}

/** A setting without a default. */
const optional = <T>(meaning: string, example: string, parse: (text: string) => T) => ({ meaning, example, parse });
const preset = <T>(meaning: string, fallback: string, parse: (text: string) => T, example = fallback) => ({
  ...optional(meaning, example, parse),
  fallback,
});
const httpUrl = url('http:', 'https:');
const count = integer(0, 1_000_000_000);
const limit = (objects: string, fallback: string) =>
  preset(`${objects} of one organization; 0 is no limit`, fallback, count);

/** Every setting that Sendwright itself reads. Temporal's own (`TEMPORAL_*`) are read by its configuration library. */
export const SETTINGS = {
  PORT: preset('port of the API', '3000', integer(0, 65_535)),
  HOST: preset('address on which the API listens, and a worker with METRICS_PORT', '127.0.0.1', text, '0.0.0.0'),
  METRICS_PORT: optional(
    'port on which a worker answers /metrics, /healthz and /readyz; without it, the worker does not listen',
    '9464',
    integer(1, 65_535),
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    "URL to which traces are sent (OTLP over HTTP); without it, tracing is off. OpenTelemetry's other settings apply too",
    'http://localhost:4318',
    httpUrl,
  ),
  TRUST_PROXY: optional(
    'addresses and ranges of the proxies in front of the API whose X-Forwarded-For header is trusted',
    '10.0.0.0/8',
    ranges,
  ),
  DATABASE_URL: optional(
    "URL of Sendwright's Postgres database",
    'postgres://sendwright:secret@localhost:5432/sendwright',
    url('postgres:', 'postgresql:'),
  ),
  SECRET_KEY: optional(
    `signs links, cursors and tokens, and seals secrets: 32 random bytes, at least ${SECRET_KEY_LENGTH} characters, the same in every process`,
    '$(head -c 32 /dev/urandom | base64)',
    secretKey,
  ),
  SECRET_KEY_OLD: optional(
    'former values of SECRET_KEY, separated by commas or one per line: they verify and open, but no longer sign or seal',
    '3q2+7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    secretKeys,
  ),
  PUBLIC_URL: optional(
    'public URL of the API; links in responses and emails begin with it',
    'https://mail.example.com',
    httpUrl,
  ),
  LINK_URL: optional(
    'URL of tracking and unsubscribe links, by default PUBLIC_URL: the API under another host name, so that what recipients think of the links of one organization is not about the name of the API and dashboard',
    'https://links.example.com',
    httpUrl,
  ),
  SYSTEM_EMAIL_FROM: optional(
    "sender of this service's own emails: invitations and password resets. An organization must have verified its domain, and PUBLIC_URL must be set. Without it, invitation links are shown, and `admin user reset` resets passwords",
    'Sendwright <accounts@example.com>',
    mailbox,
  ),
  OIDC_ISSUER: optional(
    'issuer of the OpenID Connect provider by which users may sign in to the dashboard. It needs OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and an https PUBLIC_URL; the redirect URI is PUBLIC_URL/dashboard/sign-in/oidc/callback',
    'https://login.example.com',
    issuer,
  ),
  OIDC_CLIENT_ID: optional('client ID of this service at that provider', 'sendwright', text),
  OIDC_CLIENT_SECRET: optional('client secret of this service at that provider', 'a long random text', text),
  OIDC_NAME: preset('name of that provider on the sign-in page', 'single sign-on', text, 'Example Login'),
  DOCS_SENDER_DOMAIN: optional('domain of the sender in the examples of /docs', 'example.org', text),
  TEMPORAL_UI_URL: optional(
    "URL of Temporal's UI, to whose workflows the dashboard links",
    'https://temporal.example.com',
    httpUrl,
  ),
  ATTACHMENT_STORE: optional(
    'store of attachments; by default the folder attachments in SENDWRIGHT_HOME',
    's3://bucket/prefix',
    matching(/^(?:file:.|s3:\/\/[^/?#])/),
  ),
  ATTACHMENT_ALLOW_CIDRS: optional(
    'private address ranges from which attachments may be fetched',
    '10.1.0.0/16,192.168.5.5',
    ranges,
  ),
  WEBHOOK_ALLOW_CIDRS: optional(
    'private address ranges in which webhook endpoints are allowed, there also without https',
    '10.1.0.0/16',
    ranges,
  ),
  DNS_SERVERS: optional(
    'DNS servers that are queried for the records of domains; by default those of the system',
    '1.1.1.1,[2606:4700:4700::1111]:53',
    servers,
  ),
  SENDWRIGHT_HOME: preset('folder in which `npm start` keeps everything that it embeds', '.sendwright', text),
  SENDWRIGHT_URL: optional(
    'URL of the API for the command line; by default that of the `npm start` in SENDWRIGHT_HOME',
    'https://mail.example.com',
    httpUrl,
  ),
  SENDWRIGHT_API_KEY: optional(
    'API key that the command line uses; by default that of the `npm start` in SENDWRIGHT_HOME',
    'sw_live_…',
    matching(/^sw_live_\S+$/),
  ),
  LOG_LEVEL: preset(
    'lowest level of log lines that are printed',
    'info',
    oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  ),
  EMAIL_PROVIDERS: optional(
    'email providers in the order in which they are tried; by default those that have credentials',
    'postmark,smtp',
    providers,
  ),
  POSTMARK_SERVER_TOKEN: optional(
    'token of the Postmark server that sends',
    '00000000-0000-0000-0000-000000000000',
    text,
  ),
  POSTMARK_ACCOUNT_TOKEN: optional(
    'token of the Postmark account, to create, verify and delete domains there; without it, domains are managed there by hand',
    '00000000-0000-0000-0000-000000000000',
    text,
  ),
  POSTMARK_BASE_URL: preset("URL of Postmark's API", 'https://api.postmarkapp.com', httpUrl),
  POSTMARK_MESSAGE_STREAM: preset('Postmark message stream for email that is not marketing', 'outbound', text),
  POSTMARK_BROADCAST_STREAM: preset('Postmark message stream for marketing email', 'broadcast', text),
  POSTMARK_WEBHOOK_USER: optional("user name in Postmark's requests to /callbacks/postmark", 'postmark', text),
  POSTMARK_WEBHOOK_PASSWORD: optional(
    "password in Postmark's requests to /callbacks/postmark",
    'a long random text',
    text,
  ),
  SMTP_URL: optional(
    'URL of the SMTP server, with its credentials; `?requireTLS=false` permits a server without TLS',
    'smtps://user:password@smtp.example.com:465',
    url('smtp:', 'smtps:'),
  ),
  TWILIO_ACCOUNT_SID: optional(
    'SID of the Twilio account that sends for numbers without one of their own',
    'AC00000000000000000000000000000000',
    matching(/^AC[0-9a-f]{32}$/i),
  ),
  TWILIO_AUTH_TOKEN: optional(
    "auth token of that account; it also signs Twilio's callbacks",
    '00000000000000000000000000000000',
    text,
  ),
  TWILIO_BASE_URL: preset("URL of Twilio's API", 'https://api.twilio.com', httpUrl),
  META_ACCESS_TOKEN: optional(
    "token for Meta's WhatsApp Cloud API that sends for numbers without one of their own",
    'EAA00000000000000000',
    text,
  ),
  META_APP_SECRET: optional(
    "secret of the Meta app, which signs Meta's callbacks",
    '00000000000000000000000000000000',
    text,
  ),
  META_VERIFY_TOKEN: optional(
    'token that Meta sends when it verifies the address /callbacks/meta',
    'a long random text',
    text,
  ),
  META_BASE_URL: preset("URL of Meta's Graph API", 'https://graph.facebook.com', httpUrl),
  CHATAPP_WINDOW: preset(
    "when a chat-app message is held back outside its recipient's 24-hour window: `known` if that is certain or it has a fallback template; `enforce`; `off`",
    'known',
    oneOf(...WINDOW_POLICIES),
  ),
  NUMBER_MESSAGES_PER_SECOND: preset(
    'chat-app messages or SMS per second that one worker sends from one number at most; a provider that takes fewer answers 429, and the worker waits as long as it asks',
    '80',
    integer(1, 10_000),
  ),
  MAX_BODY_BYTES: preset('maximum size of a request body in bytes', String(43 * 1_048_576), integer(1, 1_073_741_824)),
  MAX_CONNECTIONS: preset(
    'maximum number of connections of one API process; further ones are closed',
    '10000',
    integer(1, 1_000_000),
  ),
  RATE_LIMIT_RPS: preset(
    'requests per second of one organization, with bursts of up to the requests of two seconds; 0 is no limit',
    '10000',
    count,
    '100',
  ),
  RATE_LIMIT_MAILS_PER_SECOND: preset(
    'emails per second of one organization, with bursts of up to the emails of 20 seconds; 0 is no limit',
    '10000',
    count,
    '500',
  ),
  BODY_RETENTION_DAYS: preset(
    'days after which the content of messages is erased (bodies and custom headers of emails), counted from when they were due; 0 is never. `admin organization retention` sets it for one organization',
    '0',
    integer(0, 36_500),
    '90',
  ),
  EMAIL_RETENTION_DAYS: preset(
    'days after which records of emails, chat-app messages and SMS are deleted, at least 31, counted from when they were accepted; 0 is never. Emails accepted within a twelfth of that time are deleted together',
    '0',
    zeroOr(integer(31, 36_500)),
    '365',
  ),
  REQUEST_LOG_DAYS: preset('days for which the log of API requests is kept; 0 is no log', '7', integer(0, 400), '30'),
  RATE_LIMIT_DOMAINS_PER_SECOND: preset(
    'registrations and checks of domains per second of one organization, with bursts of up to those of 100 seconds; 0 is no limit',
    '2',
    count,
  ),
  LIMIT_ENDPOINTS: limit('webhook endpoints', '20'),
  LIMIT_DOMAINS: limit('domains', '100'),
  LIMIT_KEYS: limit('API keys', '100'),
  LIMIT_NUMBERS: limit('chat-app numbers and SMS senders (counted together)', '50'),
  LIMIT_RECEIVED_PER_DAY: preset(
    'messages of users that each API process keeps for one number or SMS sender in a day; 0 is no limit',
    '100000',
    count,
  ),
  LIMIT_MEMBERS: preset('members of one organization, open invitations included; 0 is no limit', '100', count),
  LIMIT_TAG_PAIRS: limit('distinct tags (pairs of name and value)', '10000'),
  LIMIT_STORED_MB: limit('MB (1,048,576 bytes) of stored attachments', '51200'),
  RATE_LIMIT_NETWORK_RPS: preset(
    'requests per second of one network (IPv4 address or IPv6 /64) to unsubscribe links, tracking links and sign-in pages, and with wrong credentials anywhere, with bursts of up to the requests of five seconds; 0 is no limit',
    '100',
    integer(0, 1_000_000),
  ),
  WORKFLOW_STARTS_PER_SECOND: preset(
    'workflows per second that the relay starts at most for due emails, and as many for due chat-app messages and SMS; above this rate, beside a batch of emails and while workers do not keep up, messages share workflows (from 10,000 on only above the rate)',
    '20',
    integer(1, 1_000_000),
  ),
  SEND_MAX_ATTEMPTS: preset(
    'maximum number of attempts to send a message; one more may follow after an ambiguous attempt was reconciled',
    '16',
    integer(1, 1_000),
  ),
  SEND_INITIAL_INTERVAL: preset(
    'delay before the second attempt; it doubles with each further one',
    '2s',
    parseDuration,
  ),
  SEND_MAX_INTERVAL: preset('maximum delay between two attempts', '30m', parseDuration),
  CONFIRM_NOT_FOUND_AFTER: preset(
    `time after a provider's first "not found" from which a second one confirms it, because its search may lag`,
    '60s',
    parseDuration,
  ),
  GONE_WORKER_WAIT: preset(
    'time for which a call to an SMTP server is waited for after the database session of its worker has ended: a longer time, up to ' +
      '12m, avoids duplicates if the worker is only cut off from the database, and delays the email if the worker is dead',
    '20s',
    parseDuration,
  ),
  SHUTDOWN_TIMEOUT: preset(
    'time that a process has after SIGTERM to finish the calls in progress',
    '30s',
    parseDuration,
    '110s',
  ),
  ACCOUNT_RETRY_FOR: preset(
    'maximum time that a message waits while its provider refuses our account; then it fails',
    '72h',
    parseDuration,
  ),
  AMBIGUOUS_SEND: preset(
    'policy if it remains unknown whether a provider accepted a message: send it again, or fail it',
    'retry',
    oneOf('retry', 'fail'),
  ),
  AMBIGUOUS_SEND_MAX_REPEATS: preset(
    'with AMBIGUOUS_SEND=retry: maximum number of repeated sends of a message that may have been delivered; then it fails',
    '1',
    integer(0, 100),
  ),
} as const satisfies Record<string, Setting<unknown>>;
