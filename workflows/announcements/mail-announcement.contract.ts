/** Contract of the emails of an announcement. */
export const MAIL_ANNOUNCEMENT = 'mailAnnouncement';
export const mailAnnouncementWorkflowId = (announcementId: string): string =>
  `announcement/${announcementId}`;

export interface MailAnnouncementInput {
  announcementId: string;
  /** ISO 8601 UTC: no email is created before. */
  startsAt: string;
}
