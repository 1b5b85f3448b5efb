import { Type } from 'typebox';
import { nullable, Timestamp } from './common.ts';

export const SenderBody = Type.Object(
  {
    id: Type.String({ examples: ['snd_01kajce5q2w4e6r8t0y1u3i5op'] }),
    number: nullable(Type.String(), 'E.164, or a short code; null for a messaging service'),
    messaging_service_sid: nullable(Type.String(), 'The messaging service at Twilio'),
    countries: Type.Array(Type.String(), {
      description: 'Countries of recipients that it serves, ISO 3166-1 alpha-2; empty for all',
    }),
    created_at: Timestamp,
  },
  { title: 'SmsSender' },
);
