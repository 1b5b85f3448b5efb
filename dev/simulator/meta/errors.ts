import { randomBytes } from 'node:crypto';
import { type ChatAnswer, failureOf } from '../chat-call.ts';

/** Meta's error codes that the simulator returns, https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes. */
export const CODE = {
  permission: 10,
  parameter: 100,
  token: 190,
  tooMany: 130429,
  failed: 131000,
  missing: 131008,
  unavailable: 131016,
  undeliverable: 131026,
  reengagement: 131047,
} as const;

/** Returns an error response of Meta. */
export function refuse(status: number, code: number, title: string, details?: string): ChatAnswer {
  return {
    status,
    body: {
      error: {
        message: `(#${code}) ${title}`,
        type: 'OAuthException',
        code,
        ...(details !== undefined && { error_data: { messaging_product: 'whatsapp', details } }),
        fbtrace_id: randomBytes(8).toString('base64url'),
      },
    },
  };
}

export const failure = failureOf(refuse, {
  401: CODE.token,
  403: CODE.permission,
  429: CODE.tooMany,
  503: CODE.unavailable,
  server: CODE.failed,
  client: CODE.parameter,
});
