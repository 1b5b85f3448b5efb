import type { PostOf, UserMessage } from '../users.ts';
import { type MetaTarget, signedPost } from './callbacks.ts';

/** Posts messages of users as https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks shows them. */
export function metaInbound({ url, appSecret }: MetaTarget): PostOf {
  return (message, retries) => {
    const phoneNumberId = message.to.replace(/^\+/, '');
    const { number, userId, username } = message.user;
    const profile = { name: 'Ada', ...(username !== null && { username }) };
    const waId = number === null ? {} : { wa_id: number.slice(1) };
    const value = {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: phoneNumberId, phone_number_id: phoneNumberId },
      contacts: [{ profile, ...waId, user_id: userId }],
      messages: [
        {
          ...(number !== null && { from: number.slice(1) }),
          from_user_id: userId,
          id: message.id,
          timestamp: String(message.timestamp),
          ...(message.reply_to !== undefined && { context: { from: phoneNumberId, id: message.reply_to } }),
          ...contentOf(message),
        },
      ],
    };
    const content = signedPost(appSecret, value);
    return { url, retries, content: () => content };
  };
}

function contentOf({ text, file, fileId, button, location, reaction }: UserMessage): object {
  if (file) {
    const kind = file.content_type.split('/')[0] ?? '';
    const type = ['image', 'video', 'audio'].includes(kind) ? kind : 'document';
    const { content_type: mime_type, caption, filename } = file;
    return { type, [type]: { id: fileId, mime_type, caption, filename } };
  }
  if (button) return { type: 'button', button };
  if (location) return { type: 'location', location };
  if (reaction) return { type: 'reaction', reaction };
  return { type: 'text', text: { body: text ?? '' } };
}
