// SPDX-License-Identifier: Apache-2.0
#include "irq/label_table.hpp"

namespace affinityd::irq {

namespace {

using enum Kind;
using enum LabelPattern::Claim;

// clang-format off
constexpr LabelPattern patterns[] = {
    // Intel: the driver's name in front; the PCI function while the vector is no queue's.
    {"i40e-{pci}:misc",               control, "i40e"},
    {"i40e-{pci}:fdir-TxRx-{n}",      control, "i40e"}, // flow director, not a queue
    {"i40e-{if}-TxRx-{q}",            txrx,    "i40e"},
    {"i40e-{if}-rx-{q}",              rx,      "i40e"},
    {"i40e-{if}-tx-{q}",              tx,      "i40e"},
    {"ice-{pci}:misc",                control, "ice"},
    {"ice-{pci}:ctrl-TxRx-{n}",       control, "ice"},  // control VSI, not a queue
    {"ice-{pci}:ll_ts",               control, "ice"},
    {"ice-{if}-TxRx-{q}-{n}",         txrx,    "ice"},  // vendor's driver with fewer vectors than queues: first and last
    {"ice-{if}-TxRx-{q}",             txrx,    "ice"},
    {"ice-{if}-rx-{q}",               rx,      "ice"},
    {"ice-{if}-tx-{q}",               tx,      "ice"},
    {"iavf-{pci}:mbx",                control, "iavf"},
    {"iavf-{if}-TxRx-{q}",            txrx,    "iavf"},
    {"iavf-{if}-rx-{q}",              rx,      "iavf"},
    {"iavf-{if}-tx-{q}",              tx,      "iavf"},
    {"i40evf-{pci}:mbx",              control, "i40evf"},
    {"i40evf-{if}-TxRx-{q}",          txrx,    "i40evf"},
    {"idpf-Mailbox-{n}",              control, "idpf"},
    {"idpf-{if}-Mailbox-{n}",         control, "idpf"},
    {"idpf-{if}-TxRx-{q}",            txrx,    "idpf"},
    {"idpf-{if}-rx-{q}",              rx,      "idpf"},
    {"idpf-{if}-tx-{q}",              tx,      "idpf"},
    // Mellanox: the PCI function only.
    {"mlx5_comp{q}@pci:{pci}",        txrx,    "mlx5_core"},
    {"mlx5_pages_eq@pci:{pci}",       control, "mlx5_core"},
    {"mlx5_cmd_eq@pci:{pci}",         control, "mlx5_core"},
    {"mlx5_async_eq@pci:{pci}",       control, "mlx5_core"},
    {"mlx5_async{n}@pci:{pci}",       control, "mlx5_core"},
    {"mlx5_async@pci:{pci}",          control, "mlx5_core"},
    {"mlx4-comp-{n}@pci:{pci}",       none,    "mlx4_core"}, // the interfaces of that driver ask for vectors of their own
    {"mlx4-async@pci:{pci}",          control, "mlx4_core"},
    {"mlx4-{q}@pci:{pci}",            txrx,    "mlx4_en"},
    {"mlx4-{q}@{pci}",                txrx,    "mlx4_en"},
    // Clouds.
    {"mana_q{q}@pci:{pci}",           txrx,    "mana"},
    {"mana_hwc@pci:{pci}",            control, "mana"},
    {"gve-ntfy-blk{q}@pci:{pci}",     data_unknown, "gve"},  // the lower half of the blocks is tx: see classify
    {"gve-mgmnt@pci:{pci}",           control, "gve"},
    {"eth%d-ntfy-block.{q}",          data_unknown, "gve"},  // asked for before the interface had its name
    {"eth%d-mgmnt",                   control, "gve"},
    {"eth%d-mgmt",                    control, "gve"},
    {"{if}-ntfy-block.{q}",           data_unknown, "gve"},
    {"{if}-mgmnt",                    control, "gve"},
    {"ena-mgmnt@pci:{pci}",           control, "ena"},
    {"{if}-Tx-Rx-{q}",                txrx,    "ena"},
    {"{virtio}-input.{q}",            rx,      "virtio_net"},
    {"{virtio}-output.{q}",           tx,      "virtio_net"},
    {"{virtio}-config",               control, "virtio_net", if_nic},
    {"{virtio}-virtqueues",           txrx,    "virtio_net", if_nic}, // all queues on one vector; disks have it too
    {"{virtio}",                      txrx,    "virtio_net", if_nic}, // the PCI line of a device without MSI-X
    {"{if}-q{q}-tx",                  tx,      "xen-netfront"},
    {"{if}-q{q}-rx",                  rx,      "xen-netfront"},
    // Other drivers with a form of their own.
    {"hns3-{pci}-TxRx-{q}",           txrx,    "hns3"},
    {"hns3-{pci}-Rx-{q}",             rx,      "hns3"},
    {"hns3-{pci}-Tx-{q}",             tx,      "hns3"},
    {"hns3-{if}-TxRx-{q}",            txrx,    "hns3"},
    {"hns3-{if}-Rx-{q}",              rx,      "hns3"},
    {"hns3-{if}-Tx-{q}",              tx,      "hns3"},
    {"hclge-misc-{pci}",              control, "hns3"},
    {"hclgevf-misc-{pci}",            control, "hns3"},
    {"nfp-{pci}-lsc",                 control, "nfp"},
    {"nfp-{pci}-exn",                 control, "nfp"},
    {"{if}-lsc",                      control, "nfp"},
    {"{if}-exn",                      control, "nfp"},
    {"{if}-rxtx-{q}",                 txrx,    ""},     // nfp, vmxnet3, nicvf, octeontx2
    {"{nic}-event-{n}",               control, "vmxnet3"},
    {"{if}-rbdr-{n}",                 control, "nicvf"},
    {"{if}-qset-err-{n}",             control, "nicvf"},
    {"{if}-fp-{q}",                   txrx,    ""},     // bnx2x, qede
    {"{if} (queue {q})",              rx,      "cxgb4"},
    {"{if}-tx-{t}-rx-{q}",            txrx,    "qlcnic"},
    {"skge@pci:{pci}",                txrx,    "skge"},
    {"sky2@pci:{pci}",                txrx,    "sky2"},
    {"{if}:rx-{q}",                   rx,      "stmmac"},
    {"{if}:tx-{q}",                   tx,      "stmmac"},
    {"{if}:mac",                      control, "stmmac"},
    {"{if}:wake",                     control, "stmmac"},
    {"{if}:lpi",                      control, "stmmac"},
    {"{if}:safety-ce",                control, "stmmac"},
    {"{if}:safety-ue",                control, "stmmac"},
    {"{if}:safety",                   control, "stmmac"},
    {"{nic}_g{q}_rx",                 rx,      "gianfar"},
    {"{nic}_g{q}_tx",                 tx,      "gianfar"},
    {"{nic}_g{n}_er",                 control, "gianfar"},
    {"{nic}-err",                     control, "enic"},
    {"{nic}-notify",                  control, "enic"},
    {"{nic}-q{q}",                    txrx,    "be2net"},
    {"{nic}-xdp-{n}",                 none,    "sfc"},
    {"dpni.{n}",                      control, "fsl_dpaa2_eth"}, // link only; the data portals (dpio.N) are no netdev's
    {"{soc}",                         data_unknown, ""}, // mtk_eth_soc, fec: the platform device, several lines alike
    // What many drivers have in common.
    {"{if}-TxRx-{q}",                 txrx,    ""},     // igb, igc, ixgbe, ixgbevf, bnxt_en, tg3, txgbe
    {"{if}-TxRx-",                    data_unknown, "bnxt_en"}, // its buffer was too short for long names: number cut off
    {"{if}-rx-{q}",                   rx,      ""},
    {"{if}-tx-{q}",                   tx,      ""},
    {"{nic}-{q}",                     txrx,    ""},     // bnx2, mlx4_en, sfc, r8125
    {"{nic}",                         txrx,    ""},     // one line for everything, unless there are queue lines beside it
};
// clang-format on

} // namespace

std::span<const LabelPattern> label_patterns() { return patterns; }

} // namespace affinityd::irq
