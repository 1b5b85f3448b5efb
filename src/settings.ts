import { WINDOW_POLICIES } from './domain/chat/window.ts';
import { SECRET_KEY_LENGTH } from './lib/secret-key.ts';
import {
  accountSid,
  apiKey,
  fileStore,
  integer,
  oneOf,
  parseDuration,
  providers,
  ranges,
  secretKey,
  secretKeys,
  servers,
  text,
  url,
} from './domain/setting-values.ts';

/** How one setting is described and read. */
export interface Setting<T> {
  readonly meaning: string;
  readonly example: string;
  /** Turns the text into a value; throws anything when it cannot. */
  readonly parse: (text: string) => T;
  /** As it would be written in the environment; a setting without one is `undefined` when it is not given. */
  readonly fallback?: string;
}

/** Every setting that Sendwright itself reads. Temporal's own (`TEMPORAL_*`) are read by its configuration library. */
export const SETTINGS = {
  PORT: { meaning: 'port of the API', example: '3000', parse: integer(0, 65_535), fallback: '3000' },
  HOST: {
    meaning: 'address on which the API listens, and a worker with METRICS_PORT',
    example: '0.0.0.0',
    parse: text,
    fallback: '127.0.0.1',
  },
  METRICS_PORT: {
    meaning: 'port on which a worker answers /metrics, /healthz and /readyz; without it, on none',
    example: '9464',
    parse: integer(1, 65_535),
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    meaning:
      "where traces are sent (OTLP over HTTP); without it, none are made. OpenTelemetry's other settings count too",
    example: 'http://localhost:4318',
    parse: url('http:', 'https:'),
  },
  TRUST_PROXY: {
    meaning: 'addresses and ranges of the proxies in front of the API, whose X-Forwarded-For is believed',
    example: '10.0.0.0/8',
    parse: ranges,
  },
  DATABASE_URL: {
    meaning: "URL of Sendwright's Postgres database",
    example: 'postgres://sendwright:secret@localhost:5432/sendwright',
    parse: url('postgres:', 'postgresql:'),
  },
  SECRET_KEY: {
    meaning: `signs links, cursors and tokens, and seals secrets: 32 random bytes, at least ${SECRET_KEY_LENGTH} characters, the same in every process`,
    example: '$(head -c 32 /dev/urandom | base64)',
    parse: secretKey,
  },
  SECRET_KEY_OLD: {
    meaning:
      'former values of SECRET_KEY, separated by commas or one per line: they verify and open, but no longer sign or seal',
    example: '3q2+7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    parse: secretKeys,
  },
  PUBLIC_URL: {
    meaning: 'where the API is reached from outside; links in answers begin with it',
    example: 'https://mail.example.com',
    parse: url('http:', 'https:'),
  },
  DOCS_SENDER_DOMAIN: { meaning: 'domain of the sender in the examples of /docs', example: 'example.org', parse: text },
  TEMPORAL_UI_URL: {
    meaning: "where people reach Temporal's UI; the dashboard links to the workflows there",
    example: 'https://temporal.example.com',
    parse: url('http:', 'https:'),
  },
  ATTACHMENT_STORE: {
    meaning: 'where attachments are kept; without it, the folder attachments in SENDWRIGHT_HOME',
    example: 's3://bucket/prefix',
    parse: fileStore,
  },
  ATTACHMENT_ALLOW_CIDRS: {
    meaning: 'private address ranges from which attachments may be fetched after all',
    example: '10.1.0.0/16,192.168.5.5',
    parse: ranges,
  },
  WEBHOOK_ALLOW_CIDRS: {
    meaning: 'private address ranges in which webhook endpoints may be after all, there without https too',
    example: '10.1.0.0/16',
    parse: ranges,
  },
  DNS_SERVERS: {
    meaning: 'DNS servers that are asked for the records of domains; without it, those of the system',
    example: '1.1.1.1,[2606:4700:4700::1111]:53',
    parse: servers,
  },
  SENDWRIGHT_HOME: {
    meaning: 'folder in which `npm start` keeps everything that it embeds',
    example: '.sendwright',
    parse: text,
    fallback: '.sendwright',
  },
  SENDWRIGHT_URL: {
    meaning: 'where the command line finds the API; without it, that of the `npm start` in SENDWRIGHT_HOME',
    example: 'https://mail.example.com',
    parse: url('http:', 'https:'),
  },
  SENDWRIGHT_API_KEY: {
    meaning: 'API key that the command line uses; without it, that of the `npm start` in SENDWRIGHT_HOME',
    example: 'sw_live_…',
    parse: apiKey,
  },
  LOG_LEVEL: {
    meaning: 'least severe log lines to print',
    example: 'info',
    parse: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    fallback: 'info',
  },
  EMAIL_PROVIDERS: {
    meaning: 'email providers in the order they are tried; without it, those that have credentials',
    example: 'postmark,smtp',
    parse: providers,
  },
  POSTMARK_SERVER_TOKEN: {
    meaning: 'token of the Postmark server that sends',
    example: '00000000-0000-0000-0000-000000000000',
    parse: text,
  },
  POSTMARK_ACCOUNT_TOKEN: {
    meaning:
      'token of the Postmark account, to make, verify and delete domains there; without it, that is done by hand',
    example: '00000000-0000-0000-0000-000000000000',
    parse: text,
  },
  POSTMARK_BASE_URL: {
    meaning: "where Postmark's API is",
    example: 'https://api.postmarkapp.com',
    parse: url('http:', 'https:'),
    fallback: 'https://api.postmarkapp.com',
  },
  POSTMARK_MESSAGE_STREAM: {
    meaning: 'Postmark message stream for email that is not marketing',
    example: 'outbound',
    parse: text,
    fallback: 'outbound',
  },
  POSTMARK_BROADCAST_STREAM: {
    meaning: 'Postmark message stream for marketing email',
    example: 'broadcast',
    parse: text,
    fallback: 'broadcast',
  },
  POSTMARK_WEBHOOK_USER: {
    meaning: 'user name that Postmark gives when it calls /callbacks/postmark',
    example: 'postmark',
    parse: text,
  },
  POSTMARK_WEBHOOK_PASSWORD: {
    meaning: 'password that Postmark gives when it calls /callbacks/postmark',
    example: 'a long random text',
    parse: text,
  },
  SMTP_URL: {
    meaning: 'SMTP server to send through, with its credentials; `?requireTLS=false` allows it to offer no TLS',
    example: 'smtps://user:password@smtp.example.com:465',
    parse: url('smtp:', 'smtps:'),
  },
  TWILIO_ACCOUNT_SID: {
    meaning: 'SID of the Twilio account that sends for numbers without one of their own',
    example: 'AC00000000000000000000000000000000',
    parse: accountSid,
  },
  TWILIO_AUTH_TOKEN: {
    meaning: 'auth token of that account; Twilio signs what it reports with it',
    example: '00000000000000000000000000000000',
    parse: text,
  },
  TWILIO_BASE_URL: {
    meaning: "where Twilio's API is",
    example: 'https://api.twilio.com',
    parse: url('http:', 'https:'),
    fallback: 'https://api.twilio.com',
  },
  META_ACCESS_TOKEN: {
    meaning: "token for Meta's WhatsApp Cloud API that sends for numbers without one of their own",
    example: 'EAA00000000000000000',
    parse: text,
  },
  META_APP_SECRET: {
    meaning: 'secret of the Meta app; Meta signs what it reports with it',
    example: '00000000000000000000000000000000',
    parse: text,
  },
  META_VERIFY_TOKEN: {
    meaning: 'what Meta says when it first calls /callbacks/meta',
    example: 'a long random text',
    parse: text,
  },
  META_BASE_URL: {
    meaning: "where Meta's Graph API is",
    example: 'https://graph.facebook.com',
    parse: url('http:', 'https:'),
    fallback: 'https://graph.facebook.com',
  },
  CHATAPP_WINDOW: {
    meaning:
      "when a chat-app message is held back outside its recipient's 24-hour window: `known` if that is certain or it has a fallback template; `enforce`; `off`",
    example: 'known',
    parse: oneOf(...WINDOW_POLICIES),
    fallback: 'known',
  },
  MAX_BODY_BYTES: {
    meaning: 'largest request body in bytes',
    example: '45088768',
    parse: integer(1, 1_073_741_824),
    fallback: String(43 * 1_048_576),
  },
  MAX_CONNECTIONS: {
    meaning: 'connections that one API process accepts at a time; further ones are closed',
    example: '10000',
    parse: integer(1, 1_000_000),
    fallback: '10000',
  },
  RATE_LIMIT_RPS: {
    meaning: 'requests a second of one organization, with as many saved up as come in two seconds; 0 is no limit',
    example: '100',
    parse: integer(0, 1_000_000_000),
    fallback: '10000',
  },
  RATE_LIMIT_MAILS_PER_SECOND: {
    meaning: 'emails a second of one organization, with as many saved up as come in 20 seconds; 0 is no limit',
    example: '500',
    parse: integer(0, 1_000_000_000),
    fallback: '10000',
  },
  BODY_RETENTION_DAYS: {
    meaning:
      'days after which bodies and custom headers of emails are erased, counted from when they were due; 0 is never. `admin organization retention` sets it for one organization',
    example: '90',
    parse: integer(0, 36_500),
    fallback: '0',
  },
  RATE_LIMIT_DOMAINS_PER_SECOND: {
    meaning:
      'registrations and checks of domains a second of one organization, with as many saved up as come in 100 seconds; 0 is no limit',
    example: '2',
    parse: integer(0, 1_000_000_000),
    fallback: '2',
  },
  LIMIT_ENDPOINTS: {
    meaning: 'webhook endpoints of one organization; 0 is no limit',
    example: '20',
    parse: integer(0, 1_000_000_000),
    fallback: '20',
  },
  LIMIT_DOMAINS: {
    meaning: 'domains of one organization; 0 is no limit',
    example: '100',
    parse: integer(0, 1_000_000_000),
    fallback: '100',
  },
  LIMIT_KEYS: {
    meaning: 'API keys of one organization; 0 is no limit',
    example: '100',
    parse: integer(0, 1_000_000_000),
    fallback: '100',
  },
  LIMIT_NUMBERS: {
    meaning: 'chat-app numbers of one organization; 0 is no limit',
    example: '50',
    parse: integer(0, 1_000_000_000),
    fallback: '50',
  },
  LIMIT_MEMBERS: {
    meaning: 'members of one organization, open invitations included; 0 is no limit',
    example: '100',
    parse: integer(0, 1_000_000_000),
    fallback: '100',
  },
  LIMIT_TAG_PAIRS: {
    meaning: 'distinct tags (pairs of name and value) of one organization; 0 is no limit',
    example: '10000',
    parse: integer(0, 1_000_000_000),
    fallback: '10000',
  },
  LIMIT_STORED_MB: {
    meaning: 'MB (1,048,576 bytes) of stored attachments of one organization; 0 is no limit',
    example: '51200',
    parse: integer(0, 1_000_000_000),
    fallback: '51200',
  },
  RATE_LIMIT_NETWORK_RPS: {
    meaning:
      'requests a second of one network (IPv4 address or IPv6 /64) to unsubscribe links and sign-in pages, and with wrong credentials anywhere, with as many saved up as come in five seconds; 0 is no limit',
    example: '100',
    parse: integer(0, 1_000_000),
    fallback: '100',
  },
  WORKFLOW_STARTS_PER_SECOND: {
    meaning:
      'workflows that one relay starts for emails that are due, beyond which they share one, and as many for chat-app messages',
    example: '20',
    parse: integer(1, 1_000_000),
    fallback: '20',
  },
  SEND_MAX_ATTEMPTS: {
    meaning:
      'attempts to hand a message to a provider before it is given up; at most one more after the provider was asked about an ambiguous attempt',
    example: '16',
    parse: integer(1, 1_000),
    fallback: '16',
  },
  SEND_INITIAL_INTERVAL: {
    meaning: 'wait before the second attempt; it doubles from there',
    example: '2s',
    parse: parseDuration,
    fallback: '2s',
  },
  SEND_MAX_INTERVAL: {
    meaning: 'longest wait between two attempts',
    example: '30m',
    parse: parseDuration,
    fallback: '30m',
  },
  CONFIRM_NOT_FOUND_AFTER: {
    meaning:
      'how long after a provider first reported that it does not have a message a second report counts: its search may lag',
    example: '60s',
    parse: parseDuration,
    fallback: '60s',
  },
  SHUTDOWN_TIMEOUT: {
    meaning: 'how long a process that gets SIGTERM may finish the calls that are in progress',
    example: '110s',
    parse: parseDuration,
    fallback: '30s',
  },
  ACCOUNT_RETRY_FOR: {
    meaning: 'how long a message waits while its provider refuses our account, before it fails',
    example: '72h',
    parse: parseDuration,
    fallback: '72h',
  },
  AMBIGUOUS_SEND: {
    meaning: 'what to do when a provider cannot say whether it took a message: send it again, or give it up',
    example: 'retry',
    parse: oneOf('retry', 'fail'),
    fallback: 'retry',
  },
  AMBIGUOUS_SEND_MAX_REPEATS: {
    meaning:
      'with AMBIGUOUS_SEND=retry: how often at most a message is sent again that may have been delivered; then it fails',
    example: '1',
    parse: integer(0, 100),
    fallback: '1',
  },
} as const satisfies Record<string, Setting<unknown>>;
