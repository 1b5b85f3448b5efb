import { Type } from 'typebox';
import { eraseContent, readContent } from '../../intake/content.ts';
import { route } from '../route.ts';
import { ContentBody, EmailParams } from '../schemas/emails.ts';

export const getContent = route('getEmailContent', 'Get the content of an email', {
  description: 'Subject, bodies and custom headers as sent, until they are erased.',
  params: EmailParams,
  response: { 200: ContentBody },
  handler: (deps, { orgId, params }) => readContent(deps, orgId, params.id),
});

export const deleteContent = route('eraseEmailContent', 'Erase the content of an email', {
  description:
    'Erases bodies, custom headers and files of an email that is no longer to be sent. The record stays. Repeated, ' +
    'it changes nothing.',
  params: EmailParams,
  response: { 204: Type.Null() },
  handler: async (deps, { orgId, params }) => {
    await eraseContent(deps, orgId, params.id);
  },
});
