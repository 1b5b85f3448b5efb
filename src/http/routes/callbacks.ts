import { Type } from 'typebox';
import { isSame } from '../../lib/digest.ts';
import { ServiceError } from '../../domain/errors.ts';
import { makeMetadataSigner } from '../../domain/email/metadata-signature.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';
import type { IntakeDeps } from '../../intake/emails.ts';
import { gatherFeedback } from '../../projection/gathered-feedback.ts';
import { projectProviderSuppression } from '../../projection/provider-suppressions.ts';
import { parsePostmarkCallback } from '../../providers/postmark/callbacks.ts';
import { keepCallback } from '../../store/emails/callbacks.ts';
import { type Route, route } from '../route.ts';

/** Settings of Postmark's callbacks. */
export interface PostmarkCallbacks {
  /** User name and password of HTTP Basic authentication (RFC 7617); null when they are not set. */
  readonly credentials: { readonly user: string; readonly password: string } | null;
  /** The message stream for marketing email. */
  readonly broadcastStream: string;
}

/** Largest record. Postmark is configured to omit the email from bounces. */
const MAX_RECORD_BYTES = 1_048_576;

/**
 * Receives Postmark's webhooks. Postmark retries on 5xx and gives up on other errors: a callback that cannot be stored now
 * gets 503, and one that is not understood is kept and gets 200.
 */
export function postmark(
  { pool, wakeRelay, secretKey }: IntakeDeps & { readonly secretKey: SecretKeys },
  { credentials, broadcastStream }: PostmarkCallbacks,
): Route {
  const projectOne = gatherFeedback(pool);
  const signer = makeMetadataSigner(secretKey);
  const callback = route(
    {
      tags: ['Callbacks'],
      summary: 'Events from Postmark',
      hide: true,
      body: Type.Unknown(),
      response: { 200: Type.Object({}) },
    },
    async (request) => {
      const callback = parsePostmarkCallback(request.body, signer.verify, broadcastStream);
      const isAccepted =
        callback.is === 'feedback'
          ? await projectOne(callback.feedback)
          : callback.is === 'suppression' && (await projectProviderSuppression(pool, callback.suppression));
      if (!isAccepted) await keepCallback(pool, 'postmark', JSON.stringify(request.body));
      // The outbox may contain webhook deliveries. Grouped reports notify the relay together.
      wakeRelay();
      return {};
    },
    (request) => {
      if (credentials && hasCredentials(request.headers.authorization, credentials)) return;
      throw new ServiceError('unauthorized', 'the user name and password of the Postmark webhook are required');
    },
  );
  return { ...callback, bodyLimit: MAX_RECORD_BYTES };
}

function hasCredentials(
  authorization: string | undefined,
  { user, password }: NonNullable<PostmarkCallbacks['credentials']>,
): boolean {
  const expected = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return isSame(authorization ?? '', expected);
}
