import type { BounceReason } from '../../src/domain/email/email.ts';

/** Golden pairs in languages other than English, like those of `bounce-replies.ts`. */
export const REPLIES_IN_OTHER_LANGUAGES: Readonly<Partial<Record<BounceReason, readonly string[]>>> = {
  mailbox_not_found: ['550 Użytkownik nieznany', '550 用户不存在', '550 宛先のユーザーが存在しません'],
  mailbox_inactive: ['550 5.7.1 Ящик пользователя заблокирован', '550 该用户已被禁用'],
  dns_failure: [
    '550 Domain nicht gefunden',
    '550 Domaine inconnu',
    '550 El dominio no existe',
    '550 Dominio desconocido',
  ],
  mailbox_full: ['550 Das Postfach ist voll'],
  reputation_block: [
    '550 Ваш IP 192.0.2.7 находится в чёрном списке',
    '550 5.7.1 Su IP está en una lista negra',
    '550 Ihr Server ist gesperrt',
    '550 Expéditeur rejeté',
    '550 Mittente rifiutato',
    '550 Remetente bloqueado',
    '550 Отправитель заблокирован',
  ],
  authentication_failure: ['550 SPF: 192.0.2.7 ist nicht berechtigt, für shop.example zu senden'],
  rate_limited: ['554 Interner Fehler'],
  message_too_large: [
    '552 Nachricht zu groß',
    '552 El mensaje es demasiado grande',
    '552 Размер письма превышает допустимый',
    '552 邮件大小超过限制',
  ],
  content_rejected: ['550 Die Nachricht enthält einen Virus'],
};
