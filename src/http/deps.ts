import type { FastifyBaseLogger } from 'fastify';
import { chatSeal, type ConnectDeps } from '../accounts/chat-numbers.ts';
import { makeEndpointDeps } from '../accounts/webhooks.ts';
import { makeMetadataSigner } from '../domain/email/metadata-signature.ts';
import { makeUnsubscribeTokens } from '../domain/email/unsubscribe-token.ts';
import { makeTrackingTokens } from '../domain/email/tracked-links.ts';
import { makeDownloadLinks, makeMediaLinks } from '../domain/file-links.ts';
import type { AccountEmailSettings } from '../intake/account-emails.ts';
import type { BatchIntakeDeps } from '../intake/batches.ts';
import type { CallbackLimits } from '../intake/callback-limits.ts';
import type { ConnectionShares } from '../intake/connection-shares.ts';
import type { NetworkLimits } from '../intake/network-limits.ts';
import type { Ranges } from '../lib/ip-ranges.ts';
import type { SecretKeys } from '../lib/secret-key.ts';
import { gatherFeedback } from '../projection/gathered-feedback.ts';
import { makeTrackingRecorder } from '../projection/tracking.ts';
import type { SenderDomainDeps } from '../sender-domains/deps.ts';
import type { StoredMedia } from '../store/chat/inbound.ts';
import type { KeyCache } from '../store/accounts/key-cache.ts';
import type { RequestLog } from '../store/accounts/request-log.ts';
import type { FileStore } from '../store/files/file-store.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { makeCursors } from './cursor.ts';
import type { CurrentDescription } from './docs/current-examples.ts';
import { makeMigrationCheck } from './plugins/readiness.ts';
import { makeIsSuspendedLink } from './suspended-links.ts';

export interface HttpDeps extends BatchIntakeDeps, Pick<ConnectDeps, 'verifyNumber'> {
  readonly log: FastifyBaseLogger;
  /** Handlers with an API key use connections of their organization's share only. */
  readonly shares: ConnectionShares;
  /** The settings `SECRET_KEY` and `SECRET_KEY_OLD`. They sign cursors and links that callers send back, and seal secrets. */
  readonly secretKey: SecretKeys;
  /** The base of download links and callbacks. Without it, links start with the local address of the caller's connection. */
  readonly publicUrl: string | undefined;
  readonly maxBodyBytes: number;
  /** The sender domain in the examples of the API description; undefined means `example.com`. */
  readonly docsSenderDomain: string | undefined;
  readonly files: FileStore;
  readonly keys: KeyCache;
  /** Null if this service sends no emails about accounts. */
  readonly accountEmails: AccountEmailSettings | null;
  readonly networks: NetworkLimits;
  readonly callbackLimits: CallbackLimits;
  /** Undefined if `REQUEST_LOG_DAYS` is 0. */
  readonly requestLog?: Pick<RequestLog, 'record'> | undefined;
  /** Proxies whose X-Forwarded-For header is trusted. If empty, the caller is the network peer. */
  readonly trustedProxies: Ranges;
  readonly senderDomains: SenderDomainDeps;
  readonly webhookAllowCidrs: readonly string[];
  readonly postmarkCallbacks: {
    /** The user name and password of HTTP Basic authentication (RFC 7617); null refuses every callback. */
    readonly credentials: { readonly user: string; readonly password: string } | null;
    /** The message stream for marketing email. */
    /** The stream of marketing email alone; null if one stream sends all email. */
    readonly broadcastStream: string | null;
  };
  /** Secrets that authenticate callbacks of chat-app providers. Without them, callbacks are refused. */
  readonly chatCallbacks: {
    /** The token of the account for numbers without their own token. */
    readonly twilioAuthToken: string | undefined;
    readonly metaAppSecret: string | undefined;
    /** The token that Meta must send when it verifies the callback URL. */
    readonly metaVerifyToken: string | undefined;
  };
  /**
   * Fetches the file of a received message from its provider. The caller releases the memory after sending the file.
   * @throws Unfetchable, FetchBusy
   */
  readonly fetchMedia: (media: StoredMedia) => Promise<{ readonly content: Buffer; readonly release: () => void }>;
  readonly metrics: Metrics;
}

/** The metrics in the text format of Prometheus, rendered on each call. */
export interface Metrics {
  readonly type: string;
  readonly text: () => Promise<string>;
}

/** The dependencies of handlers: those of the process and those derived from them. */
export type RouteDeps = ReturnType<typeof makeRouteDeps>;

export function makeRouteDeps(deps: HttpDeps, describeApi: CurrentDescription) {
  const { pool, wakeRelay, secretKey, limits, senderDomains, verifyNumber, webhookAllowCidrs, publicUrl, log } = deps;
  const seal = chatSeal(secretKey);
  return {
    ...deps,
    describeApi,
    cursors: makeCursors(secretKey),
    downloadLinks: makeDownloadLinks(secretKey),
    mediaLinks: makeMediaLinks(secretKey),
    unsubscribeTokens: makeUnsubscribeTokens(secretKey),
    trackingTokens: makeTrackingTokens(secretKey),
    isSuspendedLink: makeIsSuspendedLink(pool),
    trackingRecorder: makeTrackingRecorder({ pool, wakeRelay, log }),
    metadataSigner: makeMetadataSigner(secretKey),
    seal,
    numbers: { pool, seal, verifyNumber, limits: limits.organization },
    domains: { ...senderDomains, wakeRelay, limits, publicUrl },
    webhooks: makeEndpointDeps(pool, wakeRelay, secretKey, webhookAllowCidrs, limits.organization),
    projectFeedback: gatherFeedback(pool),
    missingMigrations: makeMigrationCheck(pool),
  };
}

/**
 * Returns the same dependencies with another pool, for one request. Uses `Object.assign` on this hot path: in Node 20 each field that
 * is added to a spread costs 2 µs.
 */
export function withPool(deps: RouteDeps, pool: Pool): RouteDeps {
  const { numbers, domains, webhooks } = deps;
  return Object.assign({}, deps, {
    pool,
    numbers: Object.assign({}, numbers, { pool }),
    domains: Object.assign({}, domains, { pool }),
    webhooks: Object.assign({}, webhooks, { pool }),
  });
}
