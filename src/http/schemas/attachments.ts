import { Type } from 'typebox';
import type { AttachmentRequest } from '../../domain/email/attachments.ts';
import { ATTACHMENTS, ATTACHMENTS_BYTES, CONTENT_ID_LENGTH, FILENAME_LENGTH } from '../../domain/limits.ts';
import { nullable, objectOf, optional, ruledObject, Timestamp } from './common.ts';

const AttachmentField = ruledObject('one-source', 'AttachmentInput', null, {
  filename: Type.String({
    'x-rule': 'filename',
    description: `Up to ${FILENAME_LENGTH} characters, no path; its extension determines the content type by default`,
    examples: ['invoice.pdf'],
  }),
  content: optional('string', {
    description: 'The file in base64; content or path, not both',
    examples: ['SGVsbG8='],
  }),
  path: optional('string', {
    'x-rule': 'attachment-path',
    description: 'A public http or https URL, fetched once while the request runs',
    examples: ['https://example.com/invoice.pdf'],
  }),
  content_type: optional('string', {
    'x-rule': 'content-type',
    description: 'MIME type; by default that of the extension',
    examples: ['application/pdf'],
  }),
  content_id: optional('string', {
    'x-rule': 'content-id',
    description: `Embeds the file inline, for \`cid:<content_id>\` in the HTML; letters, digits, ., _, @ and -, up to ${CONTENT_ID_LENGTH}, unique within the email`,
    examples: ['logo'],
  }),
});

export const AttachmentsField = optional<(Partial<AttachmentRequest> & Pick<AttachmentRequest, 'filename'>)[]>(
  'array',
  {
    maxItems: ATTACHMENTS,
    'x-rule': 'unique-content-ids',
    items: AttachmentField,
    description: `Up to ${ATTACHMENTS} files, ${ATTACHMENTS_BYTES / 1_048_576} MB in total before base64`,
  },
);

const metadata = {
  id: Type.String({ examples: ['att_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
  filename: Type.String({ examples: ['invoice.pdf'] }),
  content_type: Type.String({ examples: ['application/pdf'] }),
  size: Type.Integer({ description: 'Bytes of the file, decoded', examples: [48_213] }),
  content_id: nullable(Type.String(), 'Set when it is embedded inline'),
  inline: Type.Boolean(),
};

export const AttachmentMetadata = objectOf('AttachmentMetadata', metadata);

export const AttachmentWithLink = objectOf('Attachment', {
  ...metadata,
  expires_at: Type.Unsafe<string>({ ...Timestamp, description: '30 days after the send; the file is deleted then' }),
  download_url: nullable(Type.String(), 'Signed link, valid for one hour, no API key needed; null after expires_at'),
});

export const AttachmentList = objectOf('AttachmentList', { attachments: Type.Array(AttachmentWithLink) });

export const AttachmentParams = Type.Object({
  id: Type.String({ examples: ['em_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
  attachmentId: Type.String({ examples: ['att_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
});

export const DownloadQuery = Type.Object(
  { expires: Type.String({ description: 'Unix seconds' }), signature: Type.String() },
  { additionalProperties: false },
);

/** The response of a download. */
export const FileContent = Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The file' });
