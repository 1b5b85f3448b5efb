import type { PostOf, UserMessage } from '../users.ts';
import { type Account, postTo } from './callbacks.ts';

/** Posts messages of users as https://www.twilio.com/docs/messaging/guides/webhook-request shows them. */
export function twilioInbound({ url, account }: { readonly url: string; readonly account: Account }): PostOf {
  return (message, delays) => {
    const { id, to, user, reply_to: repliesTo, reaction } = message;
    const answered = repliesTo ?? reaction?.message_id;
    const params = new URLSearchParams({
      AccountSid: account.sid,
      ApiVersion: '2010-04-01',
      ChannelPrefix: 'whatsapp',
      ExternalUserId: user.userId,
      From: `whatsapp:${user.number ?? user.userId}`,
      MessageSid: id,
      NumMedia: message.file ? '1' : '0',
      ProfileName: 'Ada',
      SmsMessageSid: id,
      SmsSid: id,
      SmsStatus: 'received',
      To: `whatsapp:${to}`,
      ...(user.number !== null && { WaId: user.number.slice(1) }),
      ...(answered !== undefined && { OriginalRepliedMessageSid: answered }),
      ...contentOf(message, account.sid),
    });
    return postTo(url, account.token, params, delays);
  };
}

function contentOf({ id, text, file, fileId, button, location, reaction }: UserMessage, account: string) {
  if (file) {
    const path = `/2010-04-01/Accounts/${account}/Messages/${id}/Media/ME${fileId ?? ''}`;
    const media = { MediaUrl0: `https://api.twilio.com${path}`, MediaContentType0: file.content_type };
    return { MessageType: 'image', Body: file.caption ?? '', ...media };
  }
  if (button)
    return { MessageType: 'button', Body: button.text, ButtonText: button.text, ButtonPayload: button.payload };
  if (reaction) return { MessageType: 'reaction', Body: reaction.emoji };
  if (!location) return { MessageType: 'text', Body: text ?? '' };
  const { latitude, longitude, name } = location;
  const place = {
    Latitude: String(latitude),
    Longitude: String(longitude),
    ...(name !== undefined && { Label: name }),
  };
  return { MessageType: 'location', Body: '', ...place };
}
