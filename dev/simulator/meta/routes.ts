import type { FastifyInstance } from 'fastify';
import { answerErrors, type ChatParts, chatCall } from '../chat-call.ts';
import { parseAndValidate } from './accept.ts';
import { isUserId } from '../../../src/domain/chat/recipient.ts';
import { NUMBERS } from '../numbers.ts';
import type { MetaReports } from './callbacks.ts';
import { CODE, failure, refuse } from './errors.ts';
import type { Files } from '../users.ts';

interface MetaParts extends ChatParts {
  /** The token that callers must send; null accepts any. */
  readonly accessToken: string | null;
  /** Null posts no reports. */
  readonly reports: MetaReports | null;
  readonly files: Files;
}

/** The part of Meta's WhatsApp Cloud API that Sendwright uses. `app` must be a separate scope, because it gets Meta's errors. */
export function metaRoutes(app: FastifyInstance, parts: MetaParts): void {
  app.addHook('onRequest', async ({ headers }, reply) => {
    const token = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1];
    if (token !== undefined && token === (parts.accessToken ?? token)) return;
    const { status, body } = refuse(401, CODE.token, 'Invalid OAuth access token - Cannot parse access token');
    await reply.code(status).send(body);
  });

  answerErrors(app, parts, failure);

  app.get<{ Params: { sender: string } }>('/v25.0/:sender', async ({ params, protocol, host }, reply) => {
    const file = parts.files.get(params.sender);
    if (file) {
      const url = `${protocol}://${host}/simulator/files/${params.sender}`;
      return { messaging_product: 'whatsapp', url, mime_type: file.content_type, id: params.sender };
    }
    const number = NUMBERS.find((each) => each === `+${params.sender}`);
    if (number !== undefined) return { display_phone_number: number, id: params.sender };
    const title = 'Unsupported get request. Object with this ID does not exist or cannot be loaded';
    const { status, body } = refuse(400, CODE.parameter, title);
    return reply.code(status).send(body);
  });

  app.post<{ Params: { sender: string } }>('/v25.0/:sender/messages', ({ params, body }, reply) =>
    chatCall(parts, reply, {
      failure,
      judge: () => {
        const judged = parseAndValidate(body, params.sender, Date.now());
        if ('status' in judged) return judged;
        const { id, to } = judged.message;
        return {
          status: 200,
          body: {
            messaging_product: 'whatsapp',
            contacts: [isUserId(to) ? { input: to, user_id: to } : { input: to, wa_id: to.slice(1) }],
            messages: [{ id, message_status: 'accepted' }],
          },
          received: judged,
          key: judged.opaque ?? JSON.stringify(body),
          expect: (behaviour) => parts.reports?.expect(judged, behaviour),
        };
      },
    }),
  );
}
