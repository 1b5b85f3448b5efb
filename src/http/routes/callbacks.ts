import { createHash, timingSafeEqual } from 'node:crypto';
import { Type } from 'typebox';
import { ServiceError } from '../../domain/errors.ts';
import { bodyProblem } from '../../domain/text.ts';
import type { IntakeDeps } from '../../intake/emails.ts';
import { project } from '../../projection/emails.ts';
import { parsePostmarkCallback } from '../../providers/postmark-callbacks.ts';
import { route } from '../route.ts';

/** User name and password of HTTP Basic authentication (RFC 7617). */
export interface Credentials {
  readonly user: string;
  readonly password: string;
}

/** What Postmark reports after the hand-over. It tries again on 5xx and gives up on other refusals. */
export function postmark(deps: IntakeDeps, credentials: Credentials | null) {
  return route(
    {
      tags: ['Callbacks'],
      summary: 'Events from Postmark',
      hide: true,
      body: Type.Unknown(),
      response: { 200: Type.Object({}) },
    },
    async (request) => {
      const report = parsePostmarkCallback(request.body);
      if (!report) throw new ServiceError('unavailable', 'this record type cannot be taken yet');
      if (report === 'foreign') return {};
      const problem = bodyProblem(report.email.id + report.email.dedupe_key);
      if (problem) throw new ServiceError('validation_error', `the record ${problem}`);
      await project(deps.pool, report.change, [report.email]);
      return {};
    },
    (request) => {
      if (credentials && knows(request.headers.authorization, credentials)) return;
      throw new ServiceError('unauthorized', 'the user name and password of the Postmark webhook are required');
    },
  );
}

/** Compares digests, so that neither contents nor lengths show in the time it takes. */
function knows(authorization: string | undefined, { user, password }: Credentials): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const expected = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return timingSafeEqual(digest(authorization ?? ''), digest(expected));
}
