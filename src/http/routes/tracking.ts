import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { isMachine } from '../../domain/email/machines.ts';
import { ServiceError } from '../../domain/errors.ts';
import type { TrackingHit } from '../../projection/tracking.ts';
import type { RouteDeps } from '../deps.ts';
import { hiddenRoute } from '../route.ts';

/** A transparent GIF of one pixel (GIF89a, https://www.w3.org/Graphics/GIF/spec-gif89a.txt). */
const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

/** Every request must reach this service. Neither the target site nor a search engine must learn the link. */
const HEADERS = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex, nofollow',
};

/** The schema of a link in an email. */
export const emailLink = {
  params: Type.Object({ token: Type.String() }),
  // Scanners and click trackers add query parameters to links, so unknown ones are accepted.
  querystring: Type.Object({}),
};

/** Serves the image that records an open. Needs no database. */
export const openImage = hiddenRoute({
  ...emailLink,
  handler: async (deps, request, reply) => {
    const email = deps.trackingTokens.readOpen(request.params.token);
    if (!email) throw noSuchLink();
    record(deps, request, email);
    return reply.headers({ ...HEADERS, 'content-type': 'image/gif' }).send(PIXEL);
  },
  options: { networkLimit: 'requests' },
});

/** Records a click and redirects to the target in the signed token, unless the organization is suspended. Needs no database. */
export const followLink = hiddenRoute({
  ...emailLink,
  handler: async (deps, request, reply) => {
    const link = deps.trackingTokens.readClick(request.params.token);
    if (!link || (await deps.isSuspendedLink(link.emailId))) throw noSuchLink();
    record(deps, request, link);
    return reply.headers(HEADERS).redirect(link.url, 302);
  },
  options: { networkLimit: 'requests' },
});

/** Ignores HEAD requests, which never come from a person. */
function record(
  { trackingRecorder }: RouteDeps,
  { method, headers }: FastifyRequest,
  hit: Omit<TrackingHit, 'isByMachine'>,
): void {
  if (method === 'HEAD') return;
  const purposes = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].flatMap((name) => headers[name] ?? []);
  trackingRecorder.record({ ...hit, isByMachine: isMachine({ userAgent: headers['user-agent'], purposes }) });
}

function noSuchLink(): ServiceError {
  return new ServiceError('not_found', 'this link is not valid; use the one in the email');
}
