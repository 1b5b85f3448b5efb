import { listSenders } from '../../store/sms/senders.ts';
import { listRoute } from '../list-route.ts';
import { SenderBody } from '../schemas/sms.ts';

const tags = ['SMS'];

export const senders = listRoute(
  'senders',
  SenderBody,
  {
    tags,
    operationId: 'listSmsSenders',
    summary: 'List SMS senders',
    description:
      'Numbers, short codes and messaging services that SMS come from, newest first. The operator connects them. Follow ' +
      '`next_cursor` until it is null.',
  },
  ({ pool }, { orgId }, after, limit) => listSenders(pool, orgId, after, limit),
);
