import { Type } from 'typebox';
import { eraseContent, readContent } from '../../intake/content.ts';
import type { IntakeDeps } from '../../intake/emails.ts';
import type { FileStore } from '../../store/files/file-store.ts';
import { callerOf } from '../plugins/auth.ts';
import { route } from '../route.ts';
import { ContentBody, EmailParams } from '../schemas/emails.ts';

interface ContentRoutesDeps extends IntakeDeps {
  readonly files: FileStore;
}

const tags = ['Emails'];

export function getContent(deps: ContentRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'getEmailContent',
      summary: 'Get the content of an email',
      description: 'Subject, bodies and custom headers as sent, until they are erased.',
      params: EmailParams,
      response: { 200: ContentBody },
    },
    (request) => readContent(deps, callerOf(request).org_id, request.params.id),
  );
}

export function deleteContent(deps: ContentRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'eraseEmailContent',
      summary: 'Erase the content of an email',
      description:
        'Erases bodies, custom headers and files of an email that is no longer to be sent. The record stays. Repeated, ' +
        'it changes nothing.',
      params: EmailParams,
      response: { 204: Type.Null() },
    },
    async (request) => {
      await eraseContent(deps, callerOf(request).org_id, request.params.id);
    },
  );
}
