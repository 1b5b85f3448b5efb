import { Type } from 'typebox';
import { isSame } from '../../lib/digest.ts';
import { ServiceError } from '../../domain/errors.ts';
import { projectProviderSuppression } from '../../projection/provider-suppressions.ts';
import { parsePostmarkCallback } from '../../providers/postmark/callbacks.ts';
import { keepCallback } from '../../store/emails/callbacks.ts';
import { hiddenRoute } from '../route.ts';

/** The maximum size of a callback. Postmark must be configured to omit the email from bounces. */
const MAX_RECORD_BYTES = 1_048_576;

/**
 * Receives Postmark's webhooks. Postmark retries after 5xx and gives up after other errors. The response is 503 if the callback
 * cannot be stored now, and 200 if it is not understood; then it is kept.
 */
export const postmark = hiddenRoute({
  body: Type.Unknown(),
  response: { 200: Type.Object({}) },
  handler: async ({ pool, wakeRelay, metadataSigner, projectFeedback, postmarkCallbacks }, { body }) => {
    const callback = parsePostmarkCallback(body, metadataSigner.verify, postmarkCallbacks.broadcastStream);
    const isAccepted =
      callback.kind === 'feedback'
        ? await projectFeedback(callback.feedback)
        : callback.kind === 'suppression' && (await projectProviderSuppression(pool, callback.suppression));
    if (!isAccepted) await keepCallback(pool, 'postmark', JSON.stringify(body));
    // The report may have added webhook deliveries.
    wakeRelay();
    return {};
  },
  options: {
    bodyLimit: MAX_RECORD_BYTES,
    guard({ postmarkCallbacks: { credentials } }, { headers: { authorization = '' } }) {
      const { user, password } = credentials ?? {};
      const expected = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
      if (credentials && isSame(authorization, expected)) return;
      throw new ServiceError('unauthorized', 'the user name and password of the Postmark webhook are required');
    },
  },
});
